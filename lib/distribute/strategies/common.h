// Helpers shared by strategies: device checks and queries about the graph.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "distribute/strategy.h"

namespace dtrain {

/// Upper limit of replicas, each of which is a thread.
inline constexpr int64_t kMostReplicas = 1024;

Check<DeviceList> at_most(int64_t most);

/// The `replicas:` option: a number for each process, or a list of numbers by process.
struct ReplicaCounts {
  std::vector<int64_t> counts;  // one element if it is not a list
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

/// Returns the device of each replica of the workload's process: `devices` in turn, or each once if `counts`
/// is null. Reports an error, and returns an empty list, if `counts` does not suit the processes.
std::vector<DeviceId> devices_of_replicas(const std::vector<DeviceId>& devices,
                                          const std::optional<ReplicaCounts>& counts, const Workload& work,
                                          Diagnostics& diagnostics);

/// Returns false and reports an error if this machine has no such device or the device cannot run this
/// program.
bool check_present(const WrittenDevice& device, Diagnostics& diagnostics);
/// Returns the devices of `list`. For `auto`, these are all GPUs that can run this program, or the CPU if no
/// GPU can, with a warning if the user probably expected a GPU. Returns an empty list if check_present()
/// fails for a device.
std::vector<DeviceId> present_devices(const DeviceList& list, Diagnostics& diagnostics);

/// Reports an error at each `device:` of a layer (once per source location), for strategies that do not
/// support it.
void reject_layers_devices(const Graph& graph, std::string_view strategy, Diagnostics& diagnostics);

/// Returns the graph nodes of user-visible layers, in graph order, and their names. Inputs and activations
/// made for an `activation:` option are left out.
std::vector<int> layer_nodes(const Graph& graph);
std::vector<std::string> layer_names(const Graph& graph);

/// Returns, for each node, the first node that reads it; nullopt for nodes without readers.
std::vector<std::optional<int>> first_readers(const Graph& graph);

}  // namespace dtrain
