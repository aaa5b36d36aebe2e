#include "run/learning_rate.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace dtrain {

RunLength run_length(const RunConfig& config, int64_t steps_per_epoch, int64_t shift) {
  const int64_t most = std::numeric_limits<int64_t>::max() / std::max<int64_t>(steps_per_epoch, 1);
  return {steps_per_epoch, std::min(config.train.epochs, most) * steps_per_epoch, shift};
}

std::string warning_of_zero_rate(const RunConfig& config, int64_t steps_per_epoch) {
  const RunLength run = run_length(config, steps_per_epoch);
  const Schedule& schedule = config.train.optimizer->learning_rate();
  const auto is_zero = [&](int64_t step) { return schedule.at(step, run, Json()) == 0; };
  if (run.steps < 3 || !is_zero(run.steps - 1) || is_zero(1)) return "";
  // Bisection: the rate is positive at step `last` and 0 at step `zero`.
  int64_t last = 1, zero = run.steps - 1;
  while (zero - last > 1) {
    const int64_t middle = last + (zero - last) / 2;
    (is_zero(middle) ? zero : last) = middle;
  }
  // If the last positive rate is below this limit, the later rates are 0 because of underflow (for example
  // with exponential_decay), although the schedule has not ended.
  constexpr double kUnderflow = 1e-200;
  if (schedule.at(last, run, Json()) < kUnderflow) return "";
  constexpr int64_t kShare = 100;  // no warning if the rate is 0 only in the last 1/100 of the steps
  if ((run.steps - zero) <= run.steps / kShare) return "";
  return fmt::format(
      "the learning rate is 0 from step {} (epoch {} of {}) to the end of the training, so the model does "
      "not learn in these steps; with `steps: auto`, the decay lasts until the end of the training",
      zero + 1, zero / steps_per_epoch + 1, config.train.epochs);
}

}  // namespace dtrain
