// Monitors: the metrics that callbacks, schedules and the best checkpoint go by.
#pragma once

#include "config/diagnostics.h"
#include "train/run_config.h"

namespace dtrain {

/// Reports every monitor of the run that is no metric of it. Parts of the run that could not be made are
/// passed over. `validation`: there is a validation split, though it may be wrong. `complete`:
/// config.total_names has all names; else a monitor may be a metric of an output that is not known.
void check_monitors(const RunConfig& config, bool validation, bool complete, Diagnostics& diagnostics);

}  // namespace dtrain
