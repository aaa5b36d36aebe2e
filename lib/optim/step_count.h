// Durations in schedules: 400, "400 steps" or "5 epochs".
#pragma once

#include "config/or_auto.h"
#include "config/schema.h"
#include "optim/schedule.h"

namespace dtrain {

/// A nonnegative count. Steps are whole numbers; epochs need not be.
struct StepCount {
  double count = 0;
  bool in_epochs = false;

  /// Returns the count in steps, rounded to the nearest.
  int64_t steps(int64_t steps_per_epoch) const;
  /// Like steps(), but at least 1.
  int64_t steps_at_least_one(int64_t steps_per_epoch) const;
};

/// Returns the length of a decay in steps, at least 1. `auto` means from step `begin` to the end of the run.
int64_t decay_steps(const OrAuto<StepCount>& count, const RunLength& run, int64_t begin = 0);

/// Returns the last step of a value that lasts to `boundary`. A boundary in epochs is the end of an epoch:
/// the next value starts one step later.
int64_t last_step_of_value(const StepCount& boundary, int64_t steps_per_epoch);

/// Returns the length of the run without the steps of the warm-up, for the schedule that follows it.
RunLength run_after(const StepCount& warmup, const RunLength& run);

template <>
struct Codec<StepCount> {
  static bool parse(const ConfigNode& node, const std::string& where, StepCount& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const StepCount& value);
  static Json schema();
};

/// Checks that a count is positive.
inline Check<StepCount> some_time() {
  return {"more than 0 steps or epochs", [](const StepCount& count) { return count.count > 0; }};
}

}  // namespace dtrain
