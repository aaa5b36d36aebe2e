#include <algorithm>

#include <fmt/format.h>

#include "optim/step_count.h"
#include "optim/table.h"

namespace dtrain {

namespace {

struct PiecewiseConstantOptions {
  std::vector<StepCount> boundaries;
  std::vector<double> values;
};

class PiecewiseConstant : public Schedule {
 public:
  explicit PiecewiseConstant(PiecewiseConstantOptions options) : options_(std::move(options)) {}
  double at(int64_t step, const RunLength& run, const Json&) const override {
    const auto& boundaries = options_.boundaries;
    const auto is_passed = [&](const StepCount& boundary) {
      return last_step_of_value(boundary, run.steps_per_epoch) < step;
    };
    const auto next = std::partition_point(boundaries.begin(), boundaries.end(), is_passed);
    return options_.values[static_cast<size_t>(next - boundaries.begin())];
  }

 private:
  PiecewiseConstantOptions options_;
};

void check(const PiecewiseConstantOptions& options, const ConfigNode& node, Diagnostics& diagnostics) {
  const auto& [boundaries, values] = options;
  if (values.size() != boundaries.size() + 1)
    diagnostics.error(
        node, fmt::format("piecewise_constant: expected {} values, one more than boundaries, found {}",
                          boundaries.size() + 1, values.size()));
  for (size_t i = 1; i < boundaries.size(); ++i) {
    const StepCount &before = boundaries[i - 1], &boundary = boundaries[i];
    if (boundary.in_epochs != before.in_epochs)
      return diagnostics.error(*node.find("boundaries"),
                               "piecewise_constant's boundaries: expected all in steps or all in epochs");
    if (boundary.count <= before.count)
      return diagnostics.error(*node.find("boundaries"),
                               "piecewise_constant's boundaries: expected each to be greater "
                               "than the one before");
  }
  if (std::any_of(values.begin(), values.end(), [](double rate) { return rate < 0; }))
    diagnostics.error(*node.find("values"), "piecewise_constant's values: expected rates of at least 0");
}

}  // namespace

void add_piecewise_constant(Registry<Schedule>& table) {
  using Options = PiecewiseConstantOptions;
  table.add<PiecewiseConstant>(
      "piecewise_constant",
      Schema<Options>("Keras's PiecewiseConstantDecay: the rate is values[i] up to and including step "
                      "boundaries[i], and after the last boundary the last value. Steps count from 0; a "
                      "boundary in epochs is the end of the epoch.")
          .example("{boundaries: [30 epochs, 60 epochs], values: [0.1, 0.01, 0.001]}")
          .required(
              "boundaries", &Options::boundaries,
              "for each value except the last, the last step or epoch with this value: 400, or '5 epochs'")
          .required("values", &Options::values, "the rates; one more value than boundaries")
          .rule(check));
}

}  // namespace dtrain
