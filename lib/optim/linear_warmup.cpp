#include <algorithm>

#include "optim/step_count.h"
#include "optim/table.h"

namespace dtrain {

namespace {

struct LinearWarmupOptions {
  StepCount steps{1};
  double initial = 0;
  Configured<Schedule> then;
};

/// A linear warm-up, followed by another schedule. The state of this schedule is the state of the other
/// schedule.
class LinearWarmup : public Schedule {
 public:
  explicit LinearWarmup(LinearWarmupOptions options) : options_(std::move(options)) {}
  double at(int64_t step, const RunLength& run, const Json& state) const override {
    const int64_t steps = options_.steps.steps(run.steps_per_epoch);
    const int64_t now = position(step, run, options_.steps);
    if (now >= steps) return options_.then->at(step - steps, run_after(options_.steps, run), state);
    const double target = options_.then->at(0, run_after(options_.steps, run), state);
    return options_.initial +
           (target - options_.initial) * static_cast<double>(now) / static_cast<double>(steps);
  }
  Json after_epoch(Json state, const MetricLookup& metric, std::string& message) const override {
    return options_.then->after_epoch(std::move(state), metric, message);
  }
  std::string monitor() const override { return options_.then->monitor(); }

 private:
  LinearWarmupOptions options_;
};

}  // namespace

void add_linear_warmup(Registry<Schedule>& table) {
  using Options = LinearWarmupOptions;
  table.add<LinearWarmup>(
      "linear_warmup",
      Schema<Options>("A linear warm-up to the initial rate of another schedule, followed by that schedule. "
                      "The other schedule counts its steps from the end of the warm-up.")
          .example("{steps: 500, then: {exponential_decay: {initial: 0.1, decay_steps: 1 epoch, decay_rate: "
                   "0.9}}}")
          .required("steps", &Options::steps, "length of the warm-up, in steps or as '1 epoch'", some_time())
          .optional("initial", &Options::initial, "the rate at step 0", at_least(0.0))
          .required("then", &Options::then,
                    "the schedule after the warm-up, or a number for a constant rate"));
}

}  // namespace dtrain
