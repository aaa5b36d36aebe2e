// How long a run's steps take, before it is run.
#pragma once

#include <cstdint>

#include "run/run_config.h"

namespace dtrain {

struct StepTime {
  double seconds = 0;  // the median step's
  int64_t steps = 0;   // that it is the median of
};

/// Trains on the first epoch's first batches, with fresh weights and as the run would, for about
/// `most_seconds` (three steps at least, where the epoch has them), and forgets it all.
StepTime measure_steps(const RunConfig& config, double most_seconds);

}  // namespace dtrain
