// The plans of one replica of the model, on one device or several.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "collective/collective.h"
#include "distribute/microbatches.h"
#include "distribute/schedule.h"
#include "distribute/strategy.h"
#include "engine/watchdog.h"
#include "nn/shorter_model.h"
#include "program/plan.h"

namespace dtrain {

/// Creates plans when they are first needed, and keeps the plans. Used by the threads of all slots of the
/// replica concurrently.
class ReplicaPlans {
 public:
  struct Options {
    bool spin = false;                     // PlanOptions::spin
    bool accumulates = false;              // whether a step may have several microbatches
    int64_t all_reduce_bucket = 0;         // PlanOptions::all_reduce_bucket
    bool all_reduces_row_weights = false;  // PlanOptions::all_reduces_row_weights
    RemoteSlots* remote = nullptr;         // PlanOptions::remote
  };
  /// `ops`: indexed by slot; for slots of other processes, see Plan. `groups`: indexed by slot; each
  /// communicator connects a slot with the same slot of the other replicas. Keeps references to all arguments
  /// except the vectors and the options.
  ReplicaPlans(const Graph& graph, const ModelLayout& layout, std::span<const Head> heads,
               const Placement& placement, std::vector<Ops*> ops, std::vector<Collective*> groups,
               const Options& options);

  int slots() const { return static_cast<int>(ops_.size()); }
  const ModelLayout& layout() const { return layout_; }
  const Graph& graph() const { return graph_; }
  std::span<const Head> heads() const { return heads_; }
  PipelineSchedule schedule() const { return placement_.schedule; }
  /// Maximum number of microbatches in one run of the schedule.
  int microbatches() const { return microbatches_; }
  /// Returns the plan for this key. The first call for a key creates the plan. Thread-safe.
  const Plan& plan(const PlanKey& key);
  /// Tells the channels from other processes which microbatches a step has (Plan::expect()). To be called by
  /// the slot's thread before it runs the microbatches.
  void expect(int slot, Plan::Purpose purpose, const Microbatches& microbatches, int64_t length);
  /// Returns whether other processes have slots of this replica.
  bool has_remote_slots() const { return options_.remote != nullptr; }
  /// Returns a fingerprint of the transfers between slots in the plans for these microbatches. Two processes
  /// get the same fingerprint if their plans have the same transfers.
  uint32_t fingerprint(Plan::Purpose purpose, const Microbatches& microbatches, int64_t length);
  /// Upper bound of a slot's microbatches in flight during training.
  int in_flight(int slot) const { return in_flight_[static_cast<size_t>(slot)]; }
  /// Returns whether layers run collective calls with the other replicas during training.
  bool has_collectives_in_layers() const { return !groups_.empty(); }
  /// Returns whether plans reduce gradients during backward, because each replica stores only a part of the
  /// sum. Plans then contain collective calls.
  bool reduces_gradients() const { return placement_.sharded >= ShardLevel::gradients; }
  /// Makes every thread that waits for another slot throw Aborted. Thread-safe; returns at once, even while a
  /// plan is being created.
  void abort() noexcept;
  /// `watchdog` is notified while plans are being created.
  void set_watchdog(Watchdog* watchdog) { watchdog_ = watchdog; }

 private:
  std::unique_ptr<Plan> make(const PlanKey& key);

  const Graph& graph_;
  const ModelLayout& layout_;
  std::span<const Head> heads_;
  const Placement& placement_;
  const int microbatches_;
  const Options options_;
  const std::vector<Ops*> ops_;
  // Communicators for the collective calls of layers, indexed by slot; empty if no layer makes collective
  // calls.
  std::vector<Collective*> groups_;
  std::vector<int> in_flight_;  // indexed by slot
  Watchdog* watchdog_ = nullptr;
  // Held while a plan is created, which may take minutes; also protects shorter_.
  std::mutex making_;
  std::map<int64_t, ShorterModel> shorter_;  // indexed by length
  std::mutex mutex_;                         // protects the members below; only held briefly
  bool aborted_ = false;
  std::map<PlanKey, std::unique_ptr<Plan>> plans_;
};

}  // namespace dtrain
