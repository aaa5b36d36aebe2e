// Measures the time of a run's steps before the run.
#pragma once

#include <cstdint>

#include "run/run_plan.h"

namespace dtrain {

struct StepTime {
  double seconds = 0;  // median time of a step, in seconds
  int64_t steps = 0;   // number of measured steps
};

/// Measures training steps on the first batches of the first epoch, with newly initialized weights, and
/// discards the result of the training. The first two steps are not measured if the epoch is long enough.
/// Takes about `most_seconds`, but at least three steps are measured if the epoch has five steps or more.
StepTime measure_steps(const RunPlan& plan, double most_seconds);

}  // namespace dtrain
