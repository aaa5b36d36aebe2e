// One replica of the model: its plans, and one executor per slot.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/executor.h"
#include "engine/replica_plans.h"
#include "engine/slot_threads.h"
#include "engine/update/slot_state.h"

namespace dtrain {

class Replica {
 public:
  /// `states`: by slot. Keeps references to all arguments except the options.
  Replica(const RunConfig& config, const Placement& placement, const ModelLayout& layout,
          SlotThreads& threads, std::span<const std::unique_ptr<SlotState>> states, int rank,
          const ReplicaPlans::Options& options)
      : plans_(config.graph, layout, config.heads, placement, ops_of(threads, rank), groups_of(threads, rank),
               options) {
    for (int slot = 0; slot < threads.slots(); ++slot)
      executors_.push_back(
          std::make_unique<Executor>(plans_, slot, threads.worker(rank, slot),
                                     *states[static_cast<size_t>(slot)], threads.replicas_of_all(rank, slot),
                                     threads.waiting_slots(rank, slot), threads.everyone(rank, slot)));
  }

  Executor& executor(int slot) { return *executors_[static_cast<size_t>(slot)]; }
  std::span<const std::unique_ptr<Executor>> executors() const { return executors_; }
  ReplicaPlans& plans() { return plans_; }

 private:
  static std::vector<Ops*> ops_of(SlotThreads& threads, int rank) {
    std::vector<Ops*> ops;
    for (int slot = 0; slot < threads.slots(); ++slot) ops.push_back(&threads.worker(rank, slot).ops());
    return ops;
  }
  static std::vector<Collective*> groups_of(SlotThreads& threads, int rank) {
    std::vector<Collective*> groups;
    for (int slot = 0; slot < threads.slots(); ++slot) groups.push_back(&threads.replicas_of_all(rank, slot));
    return groups;
  }

  ReplicaPlans plans_;                                // destroyed after the executors' frames
  std::vector<std::unique_ptr<Executor>> executors_;  // by slot
};

}  // namespace dtrain
