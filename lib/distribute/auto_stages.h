// Chooses pipeline stages by each layer's time and memory, for the option `stages: auto`.
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
  // Seconds of each node (layer_times.h); empty: estimated for a typical device of this type.
  std::vector<double> seconds = {};
};

/// Describes one batch as a pipeline processes it.
struct PipelineWork {
  int64_t samples = 1;   // number of samples in the largest microbatch
  int microbatches = 1;  // number of microbatches in the pipeline at a time
  int rounds = 1;        // number of rounds of `microbatches` each, one after the other (train.accumulate)
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int64_t slot_bytes = 0;       // bytes of optimizer state per element of a trained parameter
  size_t element_bytes = 4;     // bytes of an element of the compute type
  double seconds_per_byte = 0;  // seconds to copy a byte between two devices
};

/// Describes the graph for choose_stages(), with one stage per device. Bytes count parameters with their
/// gradients and optimizer state, and each layer output that is kept from forward to backward. Recomputed
/// layers take a third longer.
/// Activations that are another layer's option, or that the previous layer computes, stay on that layer's
/// stage.
StageProblem stage_problem(const Graph& graph, std::span<const PipelineDevice> devices,
                           const PipelineWork& work);

/// Returns choose_stages(stage_problem(...)).
StageCut auto_stages(const Graph& graph, std::span<const PipelineDevice> devices, const PipelineWork& work);

}  // namespace dtrain
