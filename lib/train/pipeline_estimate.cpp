#include "train/pipeline_estimate.h"

#include <algorithm>

#include "train/layer_times.h"
#include "train/microbatches.h"
#include "train/placement.h"

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
  const std::vector<DeviceId>& devices = placement.replicas[0];
  const bool any_gpu = std::any_of(devices.begin(), devices.end(),
                                   [](const DeviceId& device) { return device.kind == DeviceId::Kind::gpu; });
  const DeviceSpeed speed = typical_speed(any_gpu ? DeviceId::Kind::gpu : DeviceId::Kind::cpu);
  return {.samples = microbatches[0].size(),
          .microbatches = microbatches.count(),
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
  PipelineTimes times;
  for (size_t stage = 0; stage < alone.size(); ++stage) {
    const double seconds = alone[stage].seconds;
    times.stages.push_back({.forward = seconds / 3, .backward = seconds * 2 / 3});
    // A load has the values and their gradients.
    if (stage > 0) times.transfers.push_back((with_copies[stage].seconds - seconds) / 2);
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto stage = static_cast<size_t>(slots[i]);
    if (graph.nodes[i].recompute >= 0) times.stages[stage].backward += problem.devices[stage].seconds[i] / 3;
  }
  return times;
}

}  // namespace dtrain
