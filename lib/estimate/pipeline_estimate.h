// A pipeline before it runs: what its stages have to do, and how long they take, by estimate.
#pragma once

#include <span>
#include <vector>

#include "distribute/auto_stages.h"
#include "distribute/schedule.h"
#include "run/run_config.h"

namespace dtrain {

/// The devices of a placement's stages (whose slots need not be known yet), of the first replica. What they
/// have to offer is not said, and layers' times are left to be estimated.
std::vector<PipelineDevice> pipeline_devices(const Placement& placement);

/// What goes through it in a step of so many samples: the largest microbatch, how many are in it together,
/// and how often.
PipelineWork pipeline_work(const RunConfig& config, const Placement& placement, int64_t batch_size);

/// How long each stage takes for a microbatch, where `slots` says the stage of each node (empty: all are on
/// the only one). Backward takes two thirds of a layer's time: it computes two products where forward
/// computes one; and a third more where the layer is recomputed. What skips a stage counts as a copy from the
/// stage before its reader.
PipelineTimes pipeline_times(const Graph& graph, std::span<const int> slots,
                             std::span<const PipelineDevice> devices, const PipelineWork& work);

}  // namespace dtrain
