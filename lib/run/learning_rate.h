// The learning rate over a whole run.
#pragma once

#include <string>

#include "run/run_config.h"

namespace dtrain {

/// The length that schedules go by: `train.epochs` as it is now, so a run that goes on to another end has,
/// from there, the rates of a run of that length.
RunLength run_length(const RunConfig& config, int64_t steps_per_epoch);

/// A warning if the learning rate has fallen to 0 before the end of the training, else "".
std::string warning_of_zero_rate(const RunConfig& config, int64_t steps_per_epoch);

}  // namespace dtrain
