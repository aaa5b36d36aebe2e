// Estimates the work and the times of a pipeline's stages before it runs.
#pragma once

#include <span>
#include <vector>

#include "distribute/auto_stages.h"
#include "distribute/schedule.h"
#include "run/run_config.h"

namespace dtrain {

/// Returns the devices of the first replica's stages, with unlimited memory and without measured times. The
/// placement's slots need not be known yet.
std::vector<PipelineDevice> pipeline_devices(const Placement& placement);

/// Returns the pipeline's work in a step of `batch_size` samples: the size of the largest microbatch, the
/// number of microbatches in the pipeline at a time, and the number of rounds.
PipelineWork pipeline_work(const RunConfig& config, const Placement& placement, int64_t batch_size);

/// Returns how long each stage takes for a microbatch. `slots`: the stage of each node (empty: there is one
/// stage). Backward takes two thirds of a layer's time, because it computes two products for each product of
/// forward; recomputed layers take a third more. A value that skips a stage counts as a copy from the stage
/// before its reader.
PipelineTimes pipeline_times(const Graph& graph, std::span<const int> slots,
                             std::span<const PipelineDevice> devices, const PipelineWork& work);

}  // namespace dtrain
