// Formats the memory use of a run on each device as text and JSON.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"

namespace dtrain {

/// A run's memory: one plan per slot (device) of each replica, from Engine::memory().
struct MemoryView {
  const Graph& graph;
  const Placement& placement;
  std::span<const MemoryPlan> plans;
  std::span<const int64_t> last_shares;  // samples of each replica in the last batch of an epoch
  int first_replica = 0;                 // index of the first of these replicas across all processes

  /// Returns the number of layers that a slot computes. A layer and its `activation` option count as one
  /// layer.
  int64_t layers(int slot) const;
  int rank(const MemoryPlan& plan) const { return first_replica + plan.replica; }
  int64_t last_share(const MemoryPlan& plan) const { return last_shares[static_cast<size_t>(plan.replica)]; }
};

/// Returns a table with one row per replica, or per stage if a replica is spread over several devices, with
/// notes about shared memory.
std::string memory_text(const MemoryView& view);
/// Returns [{replica, slot, device, layers, threads, share, last_share, transfers, memory: {parameters, ...,
/// total}}].
Json replicas_json(const MemoryView& view);
/// Sets the bytes of each part of a plan under the part's name, and their sum under "total".
Json& set_bytes(Json& json, const MemoryPlan& plan);

}  // namespace dtrain
