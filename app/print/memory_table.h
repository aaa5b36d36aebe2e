// What a run takes of each device's memory, as people and programs read it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/replicas.h"

namespace dtrain {

/// A run's memory: a plan for each slot of each replica, as Replicas::memory() gives them.
struct MemoryView {
  const Graph& graph;
  const Placement& placement;
  std::span<const MemoryPlan> plans;
  std::span<const int64_t> last_shares;  // samples of an epoch's last batch, by replica

  /// The layers, as users count them, that a slot computes.
  int64_t layers(int slot) const;
  int64_t last_share(const MemoryPlan& plan) const { return last_shares[static_cast<size_t>(plan.replica)]; }
};

/// A row for each replica, or where it is spread over several devices for each of its stages, and what is to
/// know of who shares what.
std::string memory_text(const MemoryView& view);
/// [{replica, slot, device, layers, threads, share, last_share, memory: {parameters, ..., total}}]
Json replicas_json(const MemoryView& view);
/// The parts of a plan, by name, and `total`.
Json& set_bytes(Json& json, const MemoryPlan& plan);

}  // namespace dtrain
