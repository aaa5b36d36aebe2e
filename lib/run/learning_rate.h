// Learning rate over a whole run.
#pragma once

#include <string>

#include "run/run_config.h"

namespace dtrain {

/// Returns the length of the run, from which schedules compute the learning rate. The length depends on the
/// current `train.epochs`: if a run is resumed with a different number of epochs, it continues with the
/// learning rates of a run of the new length. `steps_per_epoch`: number of optimizer steps. `shift`:
/// RunLength::shift.
RunLength run_length(const RunConfig& config, int64_t steps_per_epoch, int64_t shift = 0);

/// Returns a warning if the learning rate falls to 0 before the end of training, else "".
std::string warning_of_zero_rate(const RunConfig& config, int64_t steps_per_epoch);

}  // namespace dtrain
