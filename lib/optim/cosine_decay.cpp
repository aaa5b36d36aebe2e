#include <algorithm>
#include <cmath>
#include <numbers>

#include "optim/step_count.h"
#include "optim/table.h"

namespace dtrain {

namespace {

struct CosineDecayOptions {
  double initial = 0;
  OrAuto<StepCount> steps;
  double alpha = 0;
  StepCount warmup_steps;
  double warmup_initial = 0;
};

class CosineDecay : public Schedule {
 public:
  explicit CosineDecay(const CosineDecayOptions& options) : options_(options) {}
  double at(int64_t step, const RunLength& run, const Json&) const override {
    const auto& [initial, length, alpha, warmup_length, warmup_initial] = options_;
    const int64_t now = position(step, run, length, warmup_length);
    const int64_t warmup_steps = warmup_length.steps(run.steps_per_epoch),
                  steps = decay_steps(length, run, warmup_steps);
    if (now < warmup_steps) {
      const double done = static_cast<double>(now) / static_cast<double>(warmup_steps);
      return warmup_initial + (initial - warmup_initial) * done;
    }
    const double done = static_cast<double>(std::min(now - warmup_steps, steps)) / static_cast<double>(steps);
    const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * done));
    return initial * ((1 - alpha) * cosine + alpha);
  }

 private:
  CosineDecayOptions options_;
};

}  // namespace

void add_cosine_decay(Registry<Schedule>& table) {
  using Options = CosineDecayOptions;
  table.add<CosineDecay>(
      "cosine_decay",
      Schema<Options>("Keras's CosineDecay. In the warm-up, the rate increases linearly from warmup_initial "
                      "to initial. Then, in `steps` steps, it decreases along a cosine to alpha * initial. "
                      "After that, it is constant.")
          .example("{initial: 0.1, warmup_steps: 500}")
          .required("initial", &Options::initial, "the highest rate", at_least(0.0))
          .optional("steps", &Options::steps,
                    "Length of the decrease after the warm-up, in steps or as '5 epochs'. `auto` means until "
                    "the end of the training.",
                    or_auto(some_time()))
          .optional("alpha", &Options::alpha, "the final rate as a fraction of initial", between(0.0, 1.0))
          .optional("warmup_steps", &Options::warmup_steps, "length of the warm-up, in steps or as '1 epoch'")
          .optional("warmup_initial", &Options::warmup_initial, "the rate at step 0 if there is a warm-up",
                    at_least(0.0)));
}

}  // namespace dtrain
