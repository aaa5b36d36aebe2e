// What this machine's devices can do with a run's layers.
#pragma once

#include "distribute/strategy.h"
#include "run/run_config.h"

namespace dtrain {

/// Looks at a device's memory, and runs each layer on it (layer_times.h): once for all of the CPU's devices
/// and for all GPUs of a name. Where a layer cannot be run, or one would take much of the memory, the times
/// are left to be estimated. Refers to the run.
decltype(Workload::measure) measured_devices(const RunConfig& config);

}  // namespace dtrain
