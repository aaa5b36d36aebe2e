// Measures the time of a run's steps before the run.
#pragma once

#include <cstdint>

#include "run/run_plan.h"

namespace dtrain {

struct StepTime {
  double seconds = 0;  // seconds of the median step
  int64_t steps = 0;   // number of measured steps
};

/// Trains on the first batches of the first epoch with fresh weights, for about `most_seconds` (but at least
/// three measured steps, if the epoch has them), and discards the result.
StepTime measure_steps(const RunPlan& plan, double most_seconds);

}  // namespace dtrain
