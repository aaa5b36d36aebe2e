#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "config/per_channel.h"
#include "data/transforms/transform.h"

namespace dtrain {

namespace {

struct NormalizeOptions {
  PerChannel mean, std;
};

class Normalize final : public Transform {
 public:
  explicit Normalize(const NormalizeOptions& options) {
    const auto& mean = options.mean.values;
    const auto& std = options.std.values;
    for (size_t i = 0; i < std::max(mean.size(), std.size()); ++i) {
      scale_.push_back(1 / std[i % std.size()]);
      offset_.push_back(-mean[i % mean.size()] / std[i % std.size()]);
    }
  }

  void apply(ColumnPlan& plan) const override {
    const Shape& shape = plan.spec().shape;
    const auto channels = static_cast<int64_t>(scale_.size());
    if (channels > 1 && (shape.rank() == 0 || shape.back() != channels))
      throw UserError(
          fmt::format("normalize: 'mean' or 'std' has {} numbers, one per channel (the last axis), but the "
                      "shape {} of '{}' has another number of channels",
                      channels, shape.str(), plan.spec().name));
    plan.affine(scale_, offset_);
  }
  bool is_for(const TensorSpec& after, bool target) const override {
    return !target && after.dtype == DType::float32;
  }

 private:
  std::vector<double> scale_, offset_;
};

}  // namespace

void add_normalize(Registry<Transform>& table) {
  const Check<PerChannel> positive{"positive numbers",
                                   [](const PerChannel& std) {
                                     return std::all_of(std.values.begin(), std.values.end(),
                                                        [](double v) { return v > 0; });
                                   },
                                   Json::object()};
  Schema<NormalizeOptions> schema(
      "Subtracts a given mean from the values of the float inputs and divides the differences by a given "
      "standard deviation. The results are float32.");
  schema.example("{mean: [0.49, 0.48, 0.45], std: [0.25, 0.24, 0.26]}");
  schema
      .required("mean", &NormalizeOptions::mean,
                "the mean: one number for all values, or a list with one number per channel (the last axis)")
      .required("std", &NormalizeOptions::std,
                "the standard deviation: one number for all values, or a list with one number per channel "
                "(the last axis)",
                positive)
      .rule([](const NormalizeOptions& options, const ConfigNode& node, Diagnostics& diagnostics) {
        const size_t mean = options.mean.values.size(), std = options.std.values.size();
        if (mean != std && mean != 1 && std != 1)
          diagnostics.error(node, fmt::format("normalize: the lists of means and standard deviations must "
                                              "have the same length, but have {} and {} numbers",
                                              mean, std));
      });
  table.add<Normalize>("normalize", schema);
}

}  // namespace dtrain
