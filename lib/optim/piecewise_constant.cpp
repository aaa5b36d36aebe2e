#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
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
      return last_step_of_value(boundary, run.steps_per_epoch) < position(step, run, boundary);
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
        node,
        fmt::format("piecewise_constant: expected {} (one more than there are boundaries), but found {}",
                    format_plural(std::ssize(boundaries) + 1, "value"), values.size()));
  for (size_t i = 1; i < boundaries.size(); ++i) {
    const StepCount &before = boundaries[i - 1], &boundary = boundaries[i];
    if (boundary.in_epochs != before.in_epochs)
      return diagnostics.error(
          *node.find("boundaries"),
          "piecewise_constant: either all boundaries must be in steps, or all must be in epochs");
    if (boundary.count <= before.count)
      return diagnostics.error(
          *node.find("boundaries"),
          "piecewise_constant: each boundary must be greater than the boundary before it");
  }
  if (std::any_of(values.begin(), values.end(), [](double rate) { return rate < 0; }))
    diagnostics.error(*node.find("values"), "piecewise_constant: all values must be rates of at least 0");
}

}  // namespace

void add_piecewise_constant(Registry<Schedule>& table) {
  using Options = PiecewiseConstantOptions;
  table.add<PiecewiseConstant>(
      "piecewise_constant",
      Schema<Options>("Keras's PiecewiseConstantDecay: the rate is values[i] up to and including step "
                      "boundaries[i]. After the last boundary, the rate is the last value. Steps are counted "
                      "from 0. A boundary in epochs is the end of the epoch.")
          .example("{boundaries: [30 epochs, 60 epochs], values: [0.1, 0.01, 0.001]}")
          .required("boundaries", &Options::boundaries,
                    "list of the boundaries. For each value except the last, the boundary is the last step "
                    "with this value. It is a number of steps, such as 400, or of epochs, such as '5 epochs'")
          .required("values", &Options::values, "list of the rates. It has one more item than boundaries")
          .rule(check));
}

}  // namespace dtrain
