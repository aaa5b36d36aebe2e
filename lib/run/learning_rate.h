// Learning rate over a whole run.
#pragma once

#include <string>

#include "run/run_config.h"

namespace dtrain {

/// Returns the run length for schedules, from the current `train.epochs`. A run that resumes with a different
/// number of epochs continues with the rates of a run of that length.
RunLength run_length(const RunConfig& config, int64_t steps_per_epoch);

/// Returns a warning if the learning rate falls to 0 before the end of training, else "".
std::string warning_of_zero_rate(const RunConfig& config, int64_t steps_per_epoch);

}  // namespace dtrain
