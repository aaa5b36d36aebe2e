#include <cmath>

#include "optim/step_count.h"
#include "optim/table.h"

namespace dtrain {

namespace {

struct ExponentialDecayOptions {
  double initial = 0;
  StepCount decay_steps{1};
  double decay_rate = 1;
  bool staircase = false;
};

class ExponentialDecay : public Schedule {
 public:
  explicit ExponentialDecay(const ExponentialDecayOptions& options) : options_(options) {}
  double at(int64_t step, const RunLength& run, const Json&) const override {
    double power = static_cast<double>(position(step, run, options_.decay_steps)) /
                   static_cast<double>(options_.decay_steps.steps_at_least_one(run.steps_per_epoch));
    if (options_.staircase) power = std::floor(power);
    return options_.initial * std::pow(options_.decay_rate, power);
  }

 private:
  ExponentialDecayOptions options_;
};

}  // namespace

void add_exponential_decay(Registry<Schedule>& table) {
  using Options = ExponentialDecayOptions;
  table.add<ExponentialDecay>(
      "exponential_decay",
      Schema<Options>("Keras's ExponentialDecay: the rate is initial * decay_rate ^ (step / decay_steps).")
          .example("{initial: 0.1, decay_steps: 1 epoch, decay_rate: 0.9}")
          .required("initial", &Options::initial, "the rate at step 0", at_least(0.0))
          .required(
              "decay_steps", &Options::decay_steps,
              "number of steps, or of epochs ('5 epochs'), in which the rate is multiplied by decay_rate",
              some_time())
          .required("decay_rate", &Options::decay_rate,
                    "factor by which the rate is multiplied in decay_steps steps", at_least(0.0))
          .optional(
              "staircase", &Options::staircase,
              "Whether to round the exponent down. If true, the rate changes only every decay_steps steps."));
}

}  // namespace dtrain
