// STAND-IN for train/stages.h, which chooses by time and memory: a cut by the sizes of parameters and
// outputs. Only strategies/pipeline.cpp includes it.
#pragma once

#include <vector>

#include "device/device.h"
#include "nn/graph.h"

namespace dtrain {

/// The stage of each node: as many as devices, none without a layer. There are at least as many layers.
std::vector<int> auto_stages(const Graph& graph, const std::vector<DeviceId>& devices);

}  // namespace dtrain
