// Durations in schedules: 400, "400 steps" or "5 epochs".
#pragma once

#include "config/or_auto.h"
#include "config/schema.h"
#include "optim/schedule.h"

namespace dtrain {

/// A nonnegative number of steps or epochs. Steps are whole numbers, but epochs may be fractions.
struct StepCount {
  double count = 0;
  bool in_epochs = false;

  /// Returns the count as a number of steps, rounded to the nearest integer.
  int64_t steps(int64_t steps_per_epoch) const;
  /// Like steps(), but at least 1.
  int64_t steps_at_least_one(int64_t steps_per_epoch) const;
};

inline bool is_in_steps(const StepCount& count) {
  return !count.in_epochs;
}
inline bool is_in_steps(const OrAuto<StepCount>& count) {
  return count.value && !count.value->in_epochs;
}

/// Returns the step number that a schedule with these counts (StepCount or OrAuto<StepCount>) uses to compute
/// the rate. If all counts are in steps, this is `step`, the number of steps that the run has made. If a
/// count is in epochs or `auto`, the step number is computed from the epoch instead: epochs that were trained
/// with a different number of steps count as if they had run.steps_per_epoch steps.
template <class... Counts>
int64_t position(int64_t step, const RunLength& run, const Counts&... counts) {
  return (is_in_steps(counts) && ...) ? step : step + run.shift;
}

/// Returns the length of a decay in steps. The result is at least 1. `auto` means that the decay lasts from
/// step `begin` to the end of the run.
int64_t decay_steps(const OrAuto<StepCount>& count, const RunLength& run, int64_t begin = 0);

/// Returns the last step at which a schedule has its old value, if the value changes at `boundary`. If the
/// boundary is in steps, the result is the step `boundary`, which still has the old value. If the boundary is
/// in epochs, the result is the last step of these epochs, and the next step has the new value.
int64_t last_step_of_value(const StepCount& boundary, int64_t steps_per_epoch);

/// Returns the length of a run without the steps of the warm-up. The schedule after the warm-up gets this
/// length.
RunLength run_after(const StepCount& warmup, const RunLength& run);

template <>
struct Codec<StepCount> {
  static bool parse(const ConfigNode& node, const std::string& where, StepCount& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const StepCount& value);
  static Json schema();
};

/// Requires that a count is greater than 0.
inline Check<StepCount> some_time() {
  return {"more than 0 steps or epochs", [](const StepCount& count) { return count.count > 0; }};
}

}  // namespace dtrain
