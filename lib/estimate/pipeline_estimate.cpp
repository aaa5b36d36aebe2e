#include "estimate/pipeline_estimate.h"

#include <algorithm>

#include "distribute/layer_times.h"
#include "distribute/microbatches.h"
#include "run/placement.h"

namespace dtrain {

std::vector<PipelineDevice> pipeline_devices(const Placement& placement) {
  std::vector<PipelineDevice> devices;
  for (const DeviceId& device : placement.replicas[0])
    devices.push_back(PipelineDevice{.device = device, .bytes = {}});
  return devices;
}

PipelineWork pipeline_work(const RunConfig& config, const Placement& placement, int64_t batch_size) {
  const Workload work = workload_of(config);
  const Microbatches microbatches(batch_size, placement.microbatches * config.train.accumulate, 0,
                                  static_cast<int>(placement.replicas.size()), false);
  const int together = static_cast<int>(std::min<int64_t>(placement.microbatches, microbatches.count()));
  const std::vector<DeviceId>& devices = placement.replicas[0];
  const bool any_gpu = std::any_of(devices.begin(), devices.end(),
                                   [](const DeviceId& device) { return device.kind == DeviceId::Kind::gpu; });
  const DeviceSpeed speed = typical_speed(any_gpu ? DeviceId::Kind::gpu : DeviceId::Kind::cpu);
  return {.samples = microbatches[0].size(),
          .microbatches = together,
          .rounds = (microbatches.count() + together - 1) / together,
          .schedule = placement.schedule,
          .slot_bytes = work.slot_bytes,
          .element_bytes = work.element_bytes,
          .seconds_per_byte = 1 / speed.link};
}

PipelineTimes pipeline_times(const Graph& graph, std::span<const int> slots,
                             std::span<const PipelineDevice> devices, const PipelineWork& work) {
  const std::vector<int> all_on_one(graph.nodes.size(), 0);
  if (slots.empty()) slots = all_on_one;
  StageProblem problem = stage_problem(graph, devices, work);
  const std::vector<StageLoad> with_copies = stage_loads(problem, slots);
  problem.seconds_per_byte = 0;
  const std::vector<StageLoad> alone = stage_loads(problem, slots);
  // Time of the second forward pass of the recomputed layers of each stage, in seconds: a quarter of the
  // total time of each of these layers.
  std::vector<double> again(alone.size(), 0.0);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (const auto stage = static_cast<size_t>(slots[i]); graph.nodes[i].recompute >= 0)
      again[stage] += problem.devices[stage].seconds[i] / 4;
  PipelineTimes times;
  for (size_t stage = 0; stage < alone.size(); ++stage) {
    const double seconds = alone[stage].seconds - again[stage];
    times.stages.push_back({.forward = seconds / 3, .backward = seconds * 2 / 3 + again[stage]});
    // The difference is the time of two copies: a copy of the values in the forward pass, and a copy of their
    // gradients in the backward pass.
    if (stage > 0) times.transfers.push_back((with_copies[stage].seconds - alone[stage].seconds) / 2);
  }
  return times;
}

}  // namespace dtrain
