// Learning rate over a whole run.
#pragma once

#include <string>

#include "run/run_config.h"

namespace dtrain {

/// Returns the run's length, which schedules need, from the current `train.epochs`. A run that resumes with
/// another number of epochs therefore continues with the rates of a run of that length. `steps_per_epoch`:
/// optimizer steps.
RunLength run_length(const RunConfig& config, int64_t steps_per_epoch);

/// Returns a warning if the learning rate falls to 0 before the end of training, else "".
std::string warning_of_zero_rate(const RunConfig& config, int64_t steps_per_epoch);

}  // namespace dtrain
