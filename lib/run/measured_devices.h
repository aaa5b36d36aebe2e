// Measures the memory and the speed of this machine's devices for a run's layers.
#pragma once

#include "distribute/strategy.h"
#include "run/run_config.h"

namespace dtrain {

/// Returns a function that reads a device's free memory and runs each layer on it (layer_times.h): once for
/// all CPU devices, and once for all GPUs of the same name. If a layer cannot run, or needs much of the
/// memory, the times are left empty, to be estimated. Keeps a reference to the run.
decltype(Workload::measure) measured_devices(const RunConfig& config);

}  // namespace dtrain
