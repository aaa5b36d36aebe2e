// `stages: auto`: a pipeline's stages by the time and the memory that layers take.
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

/// The device of a stage.
struct PipelineDevice {
  DeviceId device;
  std::optional<int64_t> bytes;  // for parameters and activations; nothing: as many as are asked for
  std::vector<double> seconds =
      {};  // of each node (layer_times.h); empty: estimated for a typical such device
};

/// The work that goes through a pipeline.
struct PipelineWork {
  int64_t samples = 1;   // of a microbatch, the largest
  int microbatches = 1;  // in the pipeline together
  int rounds = 1;        // that follow each other, each of so many microbatches (train.accumulate)
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int64_t slot_bytes = 0;       // of the optimizer's state, for each trained number
  size_t element_bytes = 4;     // of the compute type
  double seconds_per_byte = 0;  // of a copy between two devices
};

/// The graph as choose_stages asks for it, a stage a device. Bytes are those of parameters, gradients and
/// slots, and of the values that are kept from forward to backward: each output of a layer, once. Seconds are
/// a third longer where a layer is recomputed.
/// Activations that are another layer's option, or that the layer before computes, stay with it.
StageProblem stage_problem(const Graph& graph, std::span<const PipelineDevice> devices,
                           const PipelineWork& work);

/// The stage of each node: choose_stages() of that.
StageCut auto_stages(const Graph& graph, std::span<const PipelineDevice> devices, const PipelineWork& work);

}  // namespace dtrain
