#include <cmath>

#include "optim/step_count.h"
#include "optim/table.h"

namespace dtrain {

namespace {

struct InverseTimeDecayOptions {
  double initial = 0;
  StepCount decay_steps{1};
  double decay_rate = 0;
  bool staircase = false;
};

/// The rate initial / (1 + decay_rate * step / decay_steps).
class InverseTimeDecay : public Schedule {
 public:
  explicit InverseTimeDecay(const InverseTimeDecayOptions& options) : options_(options) {}
  double at(int64_t step, const RunLength& run, const Json&) const override {
    double time = static_cast<double>(position(step, run, options_.decay_steps)) /
                  static_cast<double>(options_.decay_steps.steps_at_least_one(run.steps_per_epoch));
    if (options_.staircase) time = std::floor(time);
    return options_.initial / (1 + options_.decay_rate * time);
  }

 private:
  InverseTimeDecayOptions options_;
};

}  // namespace

void add_inverse_time_decay(Registry<Schedule>& table) {
  using Options = InverseTimeDecayOptions;
  table.add<InverseTimeDecay>(
      "inverse_time_decay",
      Schema<Options>(
          "Keras's InverseTimeDecay: the rate is initial / (1 + decay_rate * step / decay_steps). With "
          "`decay_steps: 1`, it is the same as the option `decay` of the optimizers in Keras 1 and 2.")
          .example("{initial: 0.1, decay_steps: 1 epoch, decay_rate: 0.5}")
          .required("initial", &Options::initial, "the rate at step 0", at_least(0.0))
          .required("decay_steps", &Options::decay_steps,
                    "number of steps, or of epochs ('5 epochs'), in which the divisor grows by decay_rate",
                    some_time())
          .required("decay_rate", &Options::decay_rate,
                    "amount by which the divisor grows in decay_steps steps", at_least(0.0))
          .optional("staircase", &Options::staircase,
                    "Whether to round step / decay_steps down. If true, the rate changes only every "
                    "decay_steps steps."));
}

}  // namespace dtrain
