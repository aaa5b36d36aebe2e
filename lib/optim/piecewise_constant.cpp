#include <algorithm>

#include <fmt/format.h>

#include "optim/table.h"

namespace dtrain {

namespace {

struct PiecewiseConstantOptions {
  std::vector<int64_t> boundaries;
  std::vector<double> values;
};

class PiecewiseConstant : public Schedule {
 public:
  explicit PiecewiseConstant(PiecewiseConstantOptions options) : options_(std::move(options)) {}
  double at(int64_t step, const Json&) const override {
    const auto& boundaries = options_.boundaries;
    const auto passed = std::lower_bound(boundaries.begin(), boundaries.end(), step) - boundaries.begin();
    return options_.values[static_cast<size_t>(passed)];
  }
  Json keras_config(const Json&) const override {
    return keras_schedule(
        "PiecewiseConstantDecay",
        Json::object()
            .set("boundaries", Json::Array(options_.boundaries.begin(), options_.boundaries.end()))
            .set("values", Json::Array(options_.values.begin(), options_.values.end())));
  }

 private:
  PiecewiseConstantOptions options_;
};

void check(const PiecewiseConstantOptions& options, const Node& node, Diagnostics& diagnostics) {
  const auto& [boundaries, values] = options;
  if (values.size() != boundaries.size() + 1)
    diagnostics.error(node, fmt::format("piecewise_constant: expected one more value than boundaries ({}), "
                                        "found {}",
                                        boundaries.size() + 1, values.size()));
  if (!std::is_sorted(boundaries.begin(), boundaries.end(), std::less_equal<>()))
    diagnostics.error(*node.find("boundaries"),
                      "piecewise_constant's boundaries: expected each to be greater "
                      "than the one before");
  if (std::any_of(boundaries.begin(), boundaries.end(), [](int64_t step) { return step < 0; }))
    diagnostics.error(*node.find("boundaries"), "piecewise_constant's boundaries: expected steps from 0 on");
  if (std::any_of(values.begin(), values.end(), [](double rate) { return rate < 0; }))
    diagnostics.error(*node.find("values"), "piecewise_constant's values: expected rates of at least 0");
}

}  // namespace

void add_piecewise_constant(KindTable<Schedule>& table) {
  using Options = PiecewiseConstantOptions;
  table.add<PiecewiseConstant>(
      "piecewise_constant",
      Schema<Options>("Keras's PiecewiseConstantDecay: values[i] up to and including step boundaries[i], the "
                      "last value from then on. Steps count from 0.")
          .required("boundaries", &Options::boundaries, "the last step of each value but the last")
          .required("values", &Options::values, "the rates, one more than boundaries")
          .rule(check));
}

}  // namespace dtrain
