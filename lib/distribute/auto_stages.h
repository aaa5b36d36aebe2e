// Chooses pipeline stages from the time and memory of each layer, for the option `stages: auto`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "device/device.h"
#include "distribute/schedule.h"
#include "distribute/stages.h"
#include "nn/graph.h"

namespace dtrain {

/// The device of one stage.
struct PipelineDevice {
  DeviceId device;
  std::optional<int64_t> bytes;  // memory for parameters and activations; nullopt: unlimited
  // Seconds of each node (layer_times.h). If empty, the seconds are estimated for a typical device of this
  // type.
  std::vector<double> seconds = {};
};

/// The work on one batch in a pipeline.
struct PipelineWork {
  int64_t samples = 1;   // number of samples in the largest microbatch
  int microbatches = 1;  // number of microbatches that are in the pipeline together
  // Number of rounds (train.accumulate), which run one after the other with `microbatches` microbatches each.
  int rounds = 1;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int64_t slot_bytes = 0;       // bytes of optimizer state per element of a trained parameter
  size_t element_bytes = 4;     // bytes per element of the compute type
  double seconds_per_byte = 0;  // time to copy one byte between two devices, in seconds
};

/// Returns the problem that choose_stages() solves for this graph, with one stage per device. The memory of a
/// stage includes its parameters with their gradients and optimizer state, and every layer output that is
/// kept from forward to backward. The time of recomputed layers is increased by a third. An activation stays
/// on the stage of its layer if it is an option of the layer, or if the layer computes it together with its
/// own output.
StageProblem stage_problem(const Graph& graph, std::span<const PipelineDevice> devices,
                           const PipelineWork& work);

/// Returns choose_stages(stage_problem(...)).
StageCut auto_stages(const Graph& graph, std::span<const PipelineDevice> devices, const PipelineWork& work);

}  // namespace dtrain
