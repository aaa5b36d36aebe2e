// The totals of a step (BatchTotals), by replica.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "engine/replica.h"
#include "run/run_plan.h"

namespace dtrain {

/// Reads the totals that the slots of the replicas have computed, and sums them for each replica. Used by the
/// thread that owns the replicas.
class ReplicaTotals {
 public:
  /// `count`: number of totals (count_totals()). Keeps references to the plan and the replicas.
  ReplicaTotals(const RunPlan& plan, std::span<const std::unique_ptr<Replica>> replicas, size_t count)
      : plan_(plan), replicas_(replicas), count_(count) {}
  size_t count() const { return count_; }

  /// Waits for the step `back` steps before the last one (Executor::totals()), and returns its totals for
  /// each replica of this process. The totals are valid until the next call. If each replica is split across
  /// processes, all processes must call this function, and each process gets the totals of all replicas.
  std::vector<const double*> read(int back);

 private:
  /// Returns the totals of each slot, ordered by replica and then by slot.
  std::vector<const double*> by_slot(int back);

  const RunPlan& plan_;
  const std::span<const std::unique_ptr<Replica>> replicas_;
  const size_t count_;
  // By replica, then slot; used if each replica is split across processes.
  std::vector<double> slot_totals_;
  std::vector<std::vector<double>> sums_;  // by replica; used if replicas have several slots
};

}  // namespace dtrain
