// Monitors: the metrics that callbacks, learning rate schedules and `checkpoint.best` read after each epoch.
#pragma once

#include <set>
#include <string>

#include "config/diagnostics.h"
#include "run/run_config.h"

namespace dtrain {

/// Returns whether larger values of a monitor are better. The metric defines this. For losses, smaller values
/// are better.
bool larger_is_better(const RunConfig& config, const std::string& monitor);

/// Returns the names of all monitors of a run, without duplicates.
std::set<std::string> monitors_of(const RunConfig& config);

/// Reports every monitor that is not a metric of the run. Skips parts of the run that failed to parse.
/// `validation`: whether there is a validation split (it may have errors). `complete`: whether
/// config.total_names has all names; if not, a monitor may be a metric of an output that is not known.
void check_monitors(const RunConfig& config, bool validation, bool complete, Diagnostics& diagnostics);

}  // namespace dtrain
