// One replica of the model: its plans, and one executor per slot.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/executor.h"
#include "engine/replica_plans.h"
#include "engine/worker.h"

namespace dtrain {

/// Resources of one slot of a replica: its worker and its communicators.
struct SlotRequest {
  std::unique_ptr<Worker> worker;
  Collective* replicas = nullptr;  // communicator of this slot in all replicas
  Collective* everyone = nullptr;  // that of all slots of all replicas; the same one if there is one slot
};

class Replica {
 public:
  /// Keeps references to all arguments except `slots`.
  Replica(const Graph& graph, const ModelLayout& layout, std::span<const Head> heads,
          const Placement& placement, std::vector<SlotRequest> slots, bool spin, bool accumulates)
      : plans_(graph, layout, heads, placement, ops_of(slots), groups_of(slots), spin, accumulates) {
    for (SlotRequest& slot : slots) {
      workers_.push_back(std::move(slot.worker));
      executors_.push_back(std::make_unique<Executor>(plans_, static_cast<int>(executors_.size()),
                                                      *workers_.back(), *slot.replicas, *slot.everyone));
    }
  }

  Executor& executor(int slot) { return *executors_[static_cast<size_t>(slot)]; }
  std::span<const std::unique_ptr<Executor>> executors() const { return executors_; }
  ReplicaPlans& plans() { return plans_; }

 private:
  static std::vector<Ops*> ops_of(const std::vector<SlotRequest>& slots) {
    std::vector<Ops*> ops;
    for (const SlotRequest& slot : slots) ops.push_back(&slot.worker->ops());
    return ops;
  }
  static std::vector<Collective*> groups_of(const std::vector<SlotRequest>& slots) {
    std::vector<Collective*> groups;
    for (const SlotRequest& slot : slots) groups.push_back(slot.replicas);
    return groups;
  }

  // Members are destroyed in reverse order: first the executors' frames, then the plans, then the cuDNN
  // handles with which the plans were made.
  std::vector<std::unique_ptr<Worker>> workers_;  // by slot
  ReplicaPlans plans_;
  std::vector<std::unique_ptr<Executor>> executors_;  // by slot
};

}  // namespace dtrain
