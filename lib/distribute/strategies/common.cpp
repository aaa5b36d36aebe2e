#include "distribute/strategies/common.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace dtrain {

Check<DeviceList> at_most(int64_t most) {
  return {fmt::format("at most {} devices", most),
          [most](const DeviceList& list) { return std::ssize(list.devices) <= most; },
          Json::object().set("maxItems", most)};
}

bool Codec<ReplicaCounts>::parse(const ConfigNode& node, const std::string& where, ReplicaCounts& out,
                                 Diagnostics& diagnostics) {
  const std::vector<ConfigNode> numbers = node.is_sequence() ? node.items() : std::vector{node};
  out = {{}, node.is_sequence(), node.mark()};
  bool good = !numbers.empty();
  if (!good)
    report_unexpected(node, where, "a number, or a list with one number for each process", diagnostics);
  for (const ConfigNode& number : numbers) {
    int64_t& count = out.counts.emplace_back();
    if (!Codec<int64_t>::parse(number, where, count, diagnostics)) {
      good = false;
    } else if (count < 1 || count > kMostReplicas) {
      good =
          report_unexpected(number, where, fmt::format("a number from 1 to {}", kMostReplicas), diagnostics);
    }
  }
  return good;
}

ConfigNode Codec<ReplicaCounts>::write(const ReplicaCounts& value) {
  return value.is_list ? Codec<std::vector<int64_t>>::write(value.counts)
                       : Codec<int64_t>::write(value.counts[0]);
}

Json Codec<ReplicaCounts>::schema() {
  Json number = Codec<int64_t>::schema();
  number.set("minimum", 1).set("maximum", kMostReplicas);
  Json list = json_type("array").set("items", number).set("minItems", 1);
  return Json::object().set("anyOf", Json::array().push(std::move(number)).push(std::move(list)));
}

std::vector<DeviceId> devices_of_replicas(const std::vector<DeviceId>& devices,
                                          const std::optional<ReplicaCounts>& counts, const Workload& work,
                                          Diagnostics& diagnostics) {
  if (!counts || devices.empty()) return devices;
  const int given = static_cast<int>(counts->counts.size());
  if (counts->is_list && (work.processes > given || (work.trains && work.processes < given))) {
    diagnostics.error(
        counts->mark,
        fmt::format("replicas: the list has numbers for {} process{}, but {} started; use `mpirun -n {}`, or "
                    "give one number for all processes",
                    given, given == 1 ? "" : "es",
                    work.processes == 1 ? "1 was" : fmt::format("{} were", work.processes), given));
    return {};
  }
  const size_t process = counts->is_list ? static_cast<size_t>(work.process) : 0;
  std::vector<DeviceId> all;
  for (size_t i = 0; i < static_cast<size_t>(counts->counts[process]); ++i)
    all.push_back(devices[i % devices.size()]);
  return all;
}

bool check_present(const WrittenDevice& device, Diagnostics& diagnostics) {
  if (device.id.kind == DeviceId::Kind::cpu) return true;
  const GpuPresence gpus = gpu_presence();
  if (device.id.index < gpus.count) {
    const std::string obstacle = gpu_obstacle(device.id.index);
    if (!obstacle.empty())
      diagnostics.error(device.mark,
                        fmt::format("{} cannot run this program: {}", device.id.str(), obstacle));
    return obstacle.empty();
  }
  diagnostics.error(
      device.mark,
      gpus.count == 0
          ? fmt::format("{}: no GPU can be used ({}); the available devices are cpu:0, cpu:1, ...",
                        device.id.str(), gpus.reason)
      : gpus.count == 1
          ? fmt::format("{}: this GPU does not exist; this machine has only gpu:0", device.id.str())
          : fmt::format("{}: this GPU does not exist; this machine has gpu:0 to gpu:{}", device.id.str(),
                        gpus.count - 1));
  return false;
}

namespace {

/// Returns the devices for `auto`: all GPUs that can run this program, or the CPU if no GPU can run it. Warns
/// about GPUs that cannot run the program. Also warns about the choice of the CPU if the user probably
/// expected a GPU.
std::vector<DeviceId> automatic_devices(Diagnostics& diagnostics) {
  const GpuPresence gpus = gpu_presence();
  std::vector<DeviceId> usable;
  for (int i = 0; i < gpus.count; ++i) {
    const DeviceId gpu{DeviceId::Kind::gpu, i};
    if (const std::string obstacle = gpu_obstacle(i); obstacle.empty())
      usable.push_back(gpu);
    else
      diagnostics.warning(
          {}, fmt::format("{} is not used, because it cannot run this program: {}", gpu.str(), obstacle));
  }
  if (!usable.empty()) return usable;
  if (gpus.count == 0 && gpu_is_expected())
    diagnostics.warning({},
                        fmt::format("no GPU can be used ({}), so the run uses the CPU. `dtrain gpus` lists "
                                    "the devices; to choose the CPU, set the strategy's device to 'cpu:0'",
                                    gpus.reason));
  return {{}};
}

}  // namespace

std::vector<DeviceId> present_devices(const DeviceList& list, Diagnostics& diagnostics) {
  if (list.devices.empty()) return automatic_devices(diagnostics);
  std::vector<DeviceId> all;
  bool good = true;
  for (const WrittenDevice& device : list.devices) {
    good = check_present(device, diagnostics) && good;
    all.push_back(device.id);
  }
  return good ? all : std::vector<DeviceId>();
}

void reject_layers_devices(const Graph& graph, std::string_view strategy, Diagnostics& diagnostics) {
  std::set<std::string> reported;
  for (const GraphNode& node : graph.nodes)
    if (node.device && reported.insert(node.device->mark.str()).second)
      diagnostics.error(node.device->mark,
                        fmt::format("device: '{}' is assigned to {}, but the strategy '{}' cannot assign "
                                    "devices to individual layers; use `strategy: placed`",
                                    node.name, node.device->id.str(), strategy));
}

std::vector<int> layer_nodes(const Graph& graph) {
  std::vector<int> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].layer && !graph.nodes[i].is_activation_of_previous)
      nodes.push_back(static_cast<int>(i));
  return nodes;
}

std::vector<std::string> layer_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const int node : layer_nodes(graph)) names.push_back(graph.nodes[static_cast<size_t>(node)].name);
  return names;
}

std::vector<std::optional<int>> first_readers(const Graph& graph) {
  std::vector<std::optional<int>> readers(graph.nodes.size());
  for (size_t i = graph.nodes.size(); i-- > 0;)
    for (const ValueRef input : graph.nodes[i].inputs)
      readers[static_cast<size_t>(input.node)] = static_cast<int>(i);
  return readers;
}

}  // namespace dtrain
