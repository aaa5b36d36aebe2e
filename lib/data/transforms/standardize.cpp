#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "data/transforms/transform.h"

namespace dtrain {

namespace {

struct StandardizeOptions {};

class Standardize final : public Transform {
 public:
  explicit Standardize(const StandardizeOptions&) {}

  bool is_for(const TensorSpec& after, bool target) const override {
    return !target && after.dtype == DType::float32;
  }
  bool is_fitted() const override { return true; }
  FittedStep fit(const FitSamples& samples) const override {
    Moments moments = moments_of(samples);
    return {"standardize", {{"mean", std::move(moments.mean)}, {"deviation", std::move(moments.deviation)}}};
  }
  void apply_fitted(ColumnPlan& plan, const FittedStep& step) const override {
    const auto &means = step.numbers.at("mean"), &deviations = step.numbers.at("deviation");
    const Shape& shape = plan.spec().shape;
    const auto channels = shape.rank() == 0 ? int64_t{1} : shape.back();
    if (static_cast<int64_t>(means.size()) != channels || means.size() != deviations.size())
      throw UserError(fmt::format(
          "standardize: expected {} channels (size of the last axis) as in the training split, found {}",
          means.size(), channels));
    std::vector<double> scale, offset;
    for (size_t i = 0; i < means.size(); ++i) {
      scale.push_back(deviations[i] > 0 ? 1 / deviations[i] : 1.0);
      offset.push_back(-means[i] * scale.back());
    }
    plan.affine(std::move(scale), std::move(offset));
  }
};

}  // namespace

void add_standardize(Registry<Transform>& table) {
  table.add<Standardize>(
      "standardize",
      Schema<StandardizeOptions>(
          "Subtracts the mean of each channel from the float inputs and divides the differences by the "
          "standard deviation of the channel. The channels are the last axis; in a table, they are the "
          "columns. The means and standard deviations are computed over the training split and stored in the "
          "checkpoint. If all values of a channel are equal, only the mean is subtracted."));
}

}  // namespace dtrain
