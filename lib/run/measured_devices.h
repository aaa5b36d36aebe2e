// Measures the memory and the speed of this machine's devices for a run's layers.
#pragma once

#include "distribute/strategy.h"
#include "run/run_config.h"

namespace dtrain {

/// Returns a function that returns the free memory of a device and the times of the layers on it. To measure
/// the times, the function runs each layer (layer_times.h): once for all CPU devices, and once for all GPUs
/// with the same name. If a layer cannot run, or needs a large part of the memory, the times are empty, and
/// the caller estimates them. Keeps a reference to the run.
decltype(Workload::measure) measured_devices(const RunConfig& config);

}  // namespace dtrain
