// The plans of one replica of the model, over one device or several.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "collective/collective.h"
#include "distribute/schedule.h"
#include "distribute/strategy.h"
#include "engine/watchdog.h"
#include "nn/plan.h"

namespace dtrain {

/// The threads of the replica's slots use it at once.
class ReplicaPlans {
 public:
  /// `ops`: by slot. `groups`: of each slot's replicas. `accumulates`: whether steps may have several
  /// microbatches. Refers to all but the lists.
  ReplicaPlans(const Graph& graph, const ModelLayout& layout, std::span<const Head> heads,
               const Placement& placement, std::vector<Ops*> ops, std::vector<Collective*> groups, bool spin,
               bool accumulates);

  int slots() const { return static_cast<int>(ops_.size()); }
  const ModelLayout& layout() const { return layout_; }
  std::span<const Head> heads() const { return heads_; }
  PipelineSchedule schedule() const { return placement_.schedule; }
  /// Microbatches that the schedule takes at once, at most.
  int microbatches() const { return microbatches_; }
  /// The plan, made by whoever asks first. On any thread.
  const Plan& plan(const PlanKey& key);
  /// Microbatches that a slot has under way at most, in training.
  int in_flight(int slot) const { return in_flight_[static_cast<size_t>(slot)]; }
  /// Whether layers run collectives with the other replicas in training.
  bool meets_in_layers() const { return !groups_.empty(); }
  /// Whether plans reduce gradients as backward makes them, as there is a part of their sum only; so that
  /// replicas meet in them.
  bool reduces_gradients() const { return placement_.sharded >= ShardLevel::gradients; }
  /// Wakes every thread that waits for another slot, with Aborted. Any thread; returns at once, even while a
  /// plan is made.
  void abort() noexcept;
  /// `watchdog` is told of the plans that are made.
  void set_watchdog(Watchdog* watchdog) { watchdog_ = watchdog; }

 private:
  std::unique_ptr<Plan> make(const PlanKey& key) const;

  const Graph& graph_;
  const ModelLayout& layout_;
  std::span<const Head> heads_;
  const Placement& placement_;
  const int microbatches_;
  const bool spin_, accumulates_;
  const std::vector<Ops*> ops_;
  std::vector<Collective*> groups_;  // that layers meet in training, by slot; empty where none does
  std::vector<int> in_flight_;       // by slot
  Watchdog* watchdog_ = nullptr;
  std::mutex making_;  // held while a plan is made, which may take minutes
  std::mutex mutex_;   // of the members below; never held for long
  bool aborted_ = false;
  std::map<PlanKey, std::unique_ptr<Plan>> plans_;
};

}  // namespace dtrain
