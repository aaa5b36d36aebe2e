// Checks that this machine's devices support a run.
#pragma once

#include "collective/world.h"
#include "config/diagnostics.h"
#include "distribute/strategy.h"
#include "run/run_config.h"

namespace dtrain {

/// Returns the placement that the run's strategy makes. Reports everything that this machine does not
/// support, each error with its location: missing devices, an unsupported precision, and batches per replica
/// whose arrays exceed kMostArrayElements. The result has no replicas if a device is missing. The strategy
/// must have been parsed without errors, but the model may be incomplete. `world`: the processes of the run;
/// `trains`: see Workload.
Placement place_replicas(const RunConfig& config, Diagnostics& diagnostics,
                         const World& world = single_process(), bool trains = false);

/// Returns the warnings of place_replicas() (for example about GPUs that `devices: auto` does not use) as
/// lines of Diagnostics::warnings(). For commands that do not make a RunPlan (run/run_plan.h).
std::vector<std::string> placement_warnings(const RunConfig& config);

/// Returns the workload that the strategy places, as far as the configuration specifies it.
Workload workload_of(const RunConfig& config);

/// Reports an error if there is no training split.
void check_train_split(const RunConfig& config, Diagnostics& diagnostics);

}  // namespace dtrain
