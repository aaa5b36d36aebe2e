// Monitors: the metrics that callbacks, schedules and the best checkpoint go by.
#pragma once

#include <set>
#include <string>

#include "config/diagnostics.h"
#include "run/run_config.h"

namespace dtrain {

/// Which way one of the run's numbers gets better, by its name: as the metric has it; losses are better
/// smaller.
bool larger_is_better(const RunConfig& config, const std::string& monitor);

/// What callbacks, the learning rate's schedule and the best checkpoint go by, each once.
std::set<std::string> monitors_of(const RunConfig& config);

/// Reports every monitor of the run that is no metric of it. Parts of the run that could not be made are
/// passed over. `validation`: there is a validation split, though it may be wrong. `complete`:
/// config.total_names has all names; else a monitor may be a metric of an output that is not known.
void check_monitors(const RunConfig& config, bool validation, bool complete, Diagnostics& diagnostics);

}  // namespace dtrain
