// One replica of the model: its plans, and one executor per slot.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "collective/remote_slots.h"
#include "engine/executor.h"
#include "engine/replica_plans.h"
#include "engine/slot_threads.h"
#include "engine/update/slot_state.h"
#include "run/run_plan.h"

namespace dtrain {

class Replica {
 public:
  /// `states`: indexed by slot of this process. Keeps references to all arguments except the options. The
  /// constructor replaces the member `remote` of the options.
  Replica(const RunPlan& plan, const ModelLayout& layout, SlotThreads& threads,
          std::span<const std::unique_ptr<SlotState>> states, int rank, ReplicaPlans::Options options)
      : first_slot_(threads.first_slot()),
        remote_(make_remote_slots(plan, rank)),
        plans_(plan.config.graph, layout, plan.config.heads, plan.placement, ops_of(plan, threads, rank),
               groups_of(plan, threads, rank), with_remote(options, remote_.get())) {
    for (int slot = threads.first_slot(); slot < threads.end_slot(); ++slot)
      executors_.push_back(std::make_unique<Executor>(
          plans_, slot, threads.worker(rank, slot), *states[static_cast<size_t>(slot - first_slot_)],
          threads.replicas_of_all(rank, slot), threads.waiting_slots(rank, slot),
          threads.everyone(rank, slot)));
  }

  Executor& executor(int slot) { return *executors_[static_cast<size_t>(slot - first_slot_)]; }
  /// Returns the executors of this process's slots.
  std::span<const std::unique_ptr<Executor>> executors() const { return executors_; }
  ReplicaPlans& plans() { return plans_; }

 private:
  /// Returns a slot of this process whose device and communicators are used to plan the work of `slot`. This
  /// is `slot` itself if this process has it. Otherwise, returns a slot on the same kind of device if this
  /// process has one, or else the first slot of this process.
  static int stand_in(const RunPlan& plan, const SlotThreads& threads, int rank, int slot) {
    if (slot >= threads.first_slot() && slot < threads.end_slot()) return slot;
    const std::vector<DeviceId>& devices = plan.placement.replicas[static_cast<size_t>(rank)];
    const auto kind_of = [&](int one) { return devices[static_cast<size_t>(one)].kind; };
    for (int own = threads.first_slot(); own < threads.end_slot(); ++own)
      if (kind_of(own) == kind_of(slot)) return own;
    return threads.first_slot();
  }
  static std::vector<Ops*> ops_of(const RunPlan& plan, SlotThreads& threads, int rank) {
    std::vector<Ops*> ops;
    for (int slot = 0; slot < threads.slots(); ++slot)
      ops.push_back(&threads.worker(rank, stand_in(plan, threads, rank, slot)).ops());
    return ops;
  }
  static std::vector<Collective*> groups_of(const RunPlan& plan, SlotThreads& threads, int rank) {
    std::vector<Collective*> groups;
    for (int slot = 0; slot < threads.slots(); ++slot)
      groups.push_back(&threads.replicas_of_all(rank, stand_in(plan, threads, rank, slot)));
    return groups;
  }

  static std::unique_ptr<RemoteSlots> make_remote_slots(const RunPlan& plan, int rank) {
    if (!plan.has_divided_replicas()) return nullptr;
    std::vector<int> processes;
    for (int process = 0; process < plan.world.size(); ++process)
      processes.insert(processes.end(), static_cast<size_t>(plan.slots_of(process).size()), process);
    return std::make_unique<RemoteSlots>(plan.world, std::move(processes), rank);
  }
  static ReplicaPlans::Options with_remote(ReplicaPlans::Options options, RemoteSlots* remote) {
    options.remote = remote;
    return options;
  }

  const int first_slot_;
  std::unique_ptr<RemoteSlots> remote_;  // null if all slots are in this process
  // Declared before the executors, because it must be destroyed after the frames of the executors.
  ReplicaPlans plans_;
  std::vector<std::unique_ptr<Executor>> executors_;  // indexed by slot of this process
};

}  // namespace dtrain
