#include "estimate/machine.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "device/gpu_info.h"
#include "distribute/layer_times.h"

namespace dtrain {

namespace {

void add_devices(const ConfigNode& node, std::set<std::string>& names) {
  if (node.is_scalar())
    if (const auto device = DeviceId::parse(node.text())) names.insert(device->str());
  if (node.is_sequence())
    for (const ConfigNode& item : node.items()) add_devices(item, names);
  if (node.is_mapping())
    for (const auto& [key, value] : node.entries()) add_devices(value, names);
}

/// Returns the number of devices that the strategy and the layers name, at least 1. The devices need not
/// exist.
int count_named_devices(const RunConfig& config) {
  std::set<std::string> names;
  if (const ConfigNode* strategy = config.resolved.find("strategy")) add_devices(*strategy, names);
  for (const GraphNode& node : config.graph.nodes)
    if (node.device) names.insert(node.device->id.str());
  return std::max(static_cast<int>(names.size()), 1);
}

}  // namespace

Machine machine_for(const RunConfig& config, const MachineRequest& request) {
  std::vector<GpuInfo> here = list_gpus();
  std::erase_if(here, [](const GpuInfo& gpu) { return !gpu.problem.empty(); });
  const auto usable = [](int64_t free) {
    return static_cast<int64_t>(usable_gpu_bytes(static_cast<size_t>(free)));
  };
  const bool gpus = request.bytes || !here.empty();
  Machine machine{.kind = gpus ? DeviceId::Kind::gpu : DeviceId::Kind::cpu};
  machine.cores = cpu_info().cores;
  machine.link = typical_speed(machine.kind).link;
  if (request.link) machine.link = static_cast<double>(*request.link);
  machine.devices = here.empty() ? count_named_devices(config) : static_cast<int>(here.size());
  machine.device_count = here.empty() ? DeviceCount::of_configuration : DeviceCount::of_host;
  if (request.devices) {
    machine.devices = static_cast<int>(*request.devices);
    machine.device_count = DeviceCount::requested;
  }
  machine.requested_bytes = request.bytes.value_or(0);
  if (request.bytes) {
    machine.bytes = usable(*request.bytes);
  } else if (gpus) {
    machine.bytes = std::numeric_limits<int64_t>::max();
    for (const GpuInfo& gpu : here)
      machine.bytes = std::min(machine.bytes, usable(static_cast<int64_t>(gpu.memory_for_run)));
  } else {
    machine.bytes = static_cast<int64_t>(host_memory().left());
  }
  return machine;
}

}  // namespace dtrain
