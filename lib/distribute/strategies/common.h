// Functions that several strategies use: checks of devices, and queries about the graph.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "distribute/strategy.h"

namespace dtrain {

/// Maximum number of replicas. Each replica has at least one thread.
inline constexpr int64_t kMostReplicas = 1024;

Check<DeviceList> at_most(int64_t most);

/// The option `replicas`: one number for every process, or a list with one number for each process.
struct ReplicaCounts {
  std::vector<int64_t> counts;  // has one element if the option is a number
  bool is_list = false;
  Mark mark;
};

template <>
struct Codec<ReplicaCounts> {
  static bool parse(const ConfigNode& node, const std::string& where, ReplicaCounts& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const ReplicaCounts& value);
  static Json schema();
};

/// Returns the device of each replica of the current process. If `counts` is null, there is one replica for
/// each element of `devices`. Otherwise the devices are assigned to the replicas in turn. If `counts` does
/// not match the number of processes, reports an error and returns an empty list.
std::vector<DeviceId> devices_of_replicas(const std::vector<DeviceId>& devices,
                                          const std::optional<ReplicaCounts>& counts, const Workload& work,
                                          Diagnostics& diagnostics);

/// Checks that the device exists on this machine and can run this program. Otherwise reports an error and
/// returns false.
bool check_present(const WrittenDevice& device, Diagnostics& diagnostics);
/// Returns the devices of `list`. For `auto`, returns all GPUs that can run this program, or the CPU if no
/// GPU can run it. In the latter case, warns if the user probably expected a GPU. Returns an empty list if
/// check_present() fails for a device.
std::vector<DeviceId> present_devices(const DeviceList& list, Diagnostics& diagnostics);

/// Reports an error for each `device:` option of a layer, but only once per source location. Used by
/// strategies that do not support this option.
void reject_layers_devices(const Graph& graph, std::string_view strategy, Diagnostics& diagnostics);

/// Returns the nodes of the layers that users see, in graph order, and their names. Inputs, and activations
/// that come from an `activation:` option, are not included.
std::vector<int> layer_nodes(const Graph& graph);
std::vector<std::string> layer_names(const Graph& graph);

/// Returns the first reader of each node, or nullopt if the node has no reader.
std::vector<std::optional<int>> first_readers(const Graph& graph);

}  // namespace dtrain
