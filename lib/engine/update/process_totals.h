// The totals of a step, summed over the replicas of several processes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collective/sum_tree.h"
#include "collective/world.h"

namespace dtrain {

/// Adds the totals of a replica's slots, in the order of the slots, and writes the results to `sums`.
void sum_over_slots(std::span<const double* const> slots, std::span<double> sums);

/// Sums a step's totals over all processes, replicas and slots, while the processes exchange gradients. Used
/// for replicas on CPUs. One object serves all replicas of this process.
class ProcessTotals {
 public:
  /// `ranks`: the ranks of the replicas. `slots`: number of slots of each replica. `totals`: number of totals
  /// of a step. The object creates a background sum; all processes must create their background sums in the
  /// same order.
  ProcessTotals(const ReplicaRanks& ranks, int slots, int64_t totals, World& world);

  /// Adds the totals of one slot of a replica of this process. To be called on the slot's thread once per
  /// step. The totals must not change until the next step. The last call in a step starts the sum over the
  /// processes.
  void add(int rank, int slot, const double* totals);
  /// Waits for the sums. To be called in each step after all calls of add() in this process, on any thread.
  void wait() { sum_->wait(); }
  /// The sums of the last step; valid until the next step.
  std::span<const double> sums() const { return nodes_[0].totals; }
  /// Returns the sum of one total over all slots and replicas. `mine`: pointer to this total in the array
  /// that add() received for this slot.
  double sum_of(const double* mine, int rank, int slot) const {
    return sums()[static_cast<size_t>(mine - parts_[index_of(rank, slot)])];
  }
  /// Returns the bytes of host memory that the sums take.
  size_t bytes() const;

 private:
  /// A subtree of the summation tree over all replicas (sum_tree.h). This process sums the subtree.
  struct Node {
    size_t first, replicas;  // index of the first replica in this process, and number of replicas
    SumTree tree;
    // Sums over the node's replicas. After the exchange between the processes, the first node contains the
    // sums over all replicas.
    std::vector<double> totals;
  };

  size_t index_of(int rank, int slot) const {
    return static_cast<size_t>(rank) * static_cast<size_t>(slots_) + static_cast<size_t>(slot);
  }
  void start();

  const int slots_;
  std::vector<const double*> parts_;             // indexed by replica of this process, then slot
  std::vector<std::vector<double>> by_replica_;  // sums over the slots; used if replicas have several slots
  std::vector<Node> nodes_;
  std::atomic<size_t> added_{0};  // number of calls of add() since the first step; never reset
  std::unique_ptr<BackgroundSum<double>> sum_;
};

}  // namespace dtrain
