// What several strategies ask of devices and of the graph.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "distribute/strategy.h"

namespace dtrain {

/// Each replica is a thread.
inline constexpr int64_t kMostReplicas = 1024;

Check<DeviceList> at_most(int64_t most);

/// False, and reported as an error, if this machine has no such device, or one that cannot run this program.
bool check_present(const WrittenDevice& device, Diagnostics& diagnostics);
/// The list, or what `auto` means on this machine: all GPUs that can run this program, or else the CPU, with
/// a warning where that may surprise. Empty if check_present() is false of one of the list.
std::vector<DeviceId> present_devices(const DeviceList& list, Diagnostics& diagnostics);

/// Reports the layers that name a device, each place once, for a strategy that does not go by that.
void refuse_layers_devices(const Graph& graph, std::string_view strategy, Diagnostics& diagnostics);

/// The nodes of what users call layers, in order; and their names.
std::vector<int> layer_nodes(const Graph& graph);
std::vector<std::string> layer_names(const Graph& graph);

/// By node, in order: the first node that reads it; none for what nobody reads.
std::vector<std::optional<int>> first_readers(const Graph& graph);

}  // namespace dtrain
