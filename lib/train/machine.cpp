#include "train/machine.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "device/gpu_info.h"
#include "train/layer_times.h"

namespace dtrain {

namespace {

/// Of the devices that the run's strategy names.
int count_named_devices(const RunConfig& config) {
  Diagnostics ignored;
  std::set<std::string> names;
  for (const DeviceId& device : config.strategy->place(Workload{.graph = Graph()}, ignored).devices())
    names.insert(device.str());
  return std::max(static_cast<int>(names.size()), 1);
}

}  // namespace

Machine machine_for(const RunConfig& config, const MachineRequest& request) {
  const GpuReport here = gpu_report();
  const auto usable = [](int64_t free) {
    return static_cast<int64_t>(usable_gpu_bytes(static_cast<size_t>(free)));
  };
  const bool gpus = request.bytes || !here.gpus.empty();
  Machine machine{.kind = gpus ? DeviceId::Kind::gpu : DeviceId::Kind::cpu};
  machine.cores = cpu_info().cores;
  machine.link = typical_speed(machine.kind).link;
  if (request.link) machine.link = static_cast<double>(*request.link);
  machine.devices = here.gpus.empty() ? count_named_devices(config) : static_cast<int>(here.gpus.size());
  if (request.devices) machine.devices = static_cast<int>(*request.devices);
  if (request.bytes) {
    machine.bytes = usable(*request.bytes);
  } else if (gpus) {
    machine.bytes = std::numeric_limits<int64_t>::max();
    for (const GpuInfo& gpu : here.gpus)
      machine.bytes = std::min(machine.bytes, usable(static_cast<int64_t>(gpu.memory_free)));
  } else {
    machine.bytes = static_cast<int64_t>(host_memory().left());
  }
  return machine;
}

}  // namespace dtrain
