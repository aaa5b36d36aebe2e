// The threads of a process's replicas: one per slot, with its device and its communicators.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "collective/collective.h"
#include "collective/team.h"
#include "distribute/strategy.h"
#include "engine/worker.h"
#include "nn/parameters.h"
#include "run/run_plan.h"

namespace dtrain {

/// Starts a thread for every slot of every replica, each with a Worker. Owned by one thread, which also
/// serves as the thread of replica 0's first slot. `rank` is always the index of a replica in this process.
/// If each replica is split across processes, slots are numbered over all processes.
class SlotThreads {
 public:
  SlotThreads(const RunPlan& plan, const ModelLayout& layout);

  int replicas() const { return static_cast<int>(workers_.size()) / static_cast<int>(here_.size()); }
  /// Number of slots of a replica.
  int slots() const { return slots_; }
  /// The slots of this process: [first_slot(), end_slot()).
  int first_slot() const { return static_cast<int>(here_.begin); }
  int end_slot() const { return static_cast<int>(here_.end); }
  /// Number of threads.
  int size() const { return static_cast<int>(workers_.size()); }
  /// Returns true if each thread has its own core.
  bool spin() const { return spin_; }

  /// Returns the index of a slot among the slots of this process, which are ordered by replica.
  size_t index_of(int rank, int slot) const {
    return static_cast<size_t>(rank * here_.size() + slot - here_.begin);
  }
  Worker& worker(int rank, int slot) const { return *workers_[index_of(rank, slot)]; }
  /// Returns the communicator that connects this slot with the same slot of the other replicas in this
  /// process.
  Collective& replicas_of(int rank, int slot);
  /// Returns the communicator that connects all slots of all replicas in this process. If replicas have one
  /// slot, replicas_of() returns the same communicator.
  Collective& everyone(int rank, int slot) { return team_.member(static_cast<int>(index_of(rank, slot))); }
  /// Returns the communicator that connects this slot with the same slot of the replicas in all processes
  /// (process_group.h).
  Collective& replicas_of_all(int rank, int slot) {
    if (all_.empty()) return replicas_of(rank, slot);
    return *all_[static_cast<size_t>(slot)][static_cast<size_t>(rank)];
  }
  /// Returns the communicator that connects all slots whose devices may wait for each other. These are the
  /// slots of all processes, with one exception. If the replicas are on CPUs, have several slots and are not
  /// split across processes, the communicator connects the slots of this process, because only the host waits
  /// for other processes.
  Collective& waiting_slots(int rank, int slot) {
    if (slots_ == 1) return replicas_of_all(rank, slot);
    return everyone_of_all_.empty() ? everyone(rank, slot) : *everyone_of_all_[index_of(rank, slot)];
  }

  /// Runs work(rank, slot) on every slot's thread. The first exception aborts all threads and is rethrown.
  void run(const std::function<void(int rank, int slot)>& work);
  /// Registers a function that is called on the thread whose work has failed (Team::on_abort).
  void on_abort(std::function<void()> hook) { team_.on_abort(std::move(hook)); }
  /// Makes every thread that waits for another thread throw Aborted. Thread-safe; returns at once.
  void abort() noexcept;

 private:
  void join_processes(const RunPlan& plan);

  const int slots_;
  const Range here_;
  const bool spin_;
  Team team_;
  // Indexed by slot of this process, then by replica; empty if replicas have one slot.
  std::vector<std::vector<std::unique_ptr<Collective>>> groups_;
  // Indexed by slot, then by replica; empty if all replicas of each slot are in one process.
  std::vector<std::vector<std::unique_ptr<Collective>>> all_;
  // Indexed by replica, then slot; empty if waiting_slots() does not need it.
  std::vector<std::unique_ptr<Collective>> everyone_of_all_;
  std::vector<std::unique_ptr<Worker>> workers_;  // indexed by replica, then slot
};

}  // namespace dtrain
