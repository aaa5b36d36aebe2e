// Estimates the work and the times of a pipeline's stages without running them.
#pragma once

#include <span>
#include <vector>

#include "distribute/auto_stages.h"
#include "distribute/schedule.h"
#include "run/run_config.h"

namespace dtrain {

/// Returns the devices of the first replica's stages. They have unlimited memory and no measured times. The
/// slots of the placement need not be known yet.
std::vector<PipelineDevice> pipeline_devices(const Placement& placement);

/// Returns the pipeline's work in a step of `batch_size` samples. The result includes the size of the largest
/// microbatch, the number of microbatches that are in the pipeline together, and the number of rounds.
PipelineWork pipeline_work(const RunConfig& config, const Placement& placement, int64_t batch_size);

/// Returns the times of each stage for one microbatch. `slots`: the stage of each node. If it is empty, there
/// is a single stage. The backward pass takes two thirds of a layer's time, because it computes two matrix
/// products for each one in the forward pass. Recomputed layers take a third more time. If the reader of a
/// value is a later stage than the next one, the copy of the value is counted as a copy from the stage before
/// the reader.
PipelineTimes pipeline_times(const Graph& graph, std::span<const int> slots,
                             std::span<const PipelineDevice> devices, const PipelineWork& work);

}  // namespace dtrain
