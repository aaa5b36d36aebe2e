// The processes of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dtrain {

/// Communication among all processes of a run. Each process has one World, used by the thread that owns its
/// replicas. All processes must make the same calls in the same order. They use it to agree on totals, stop
/// signals and due checkpoints.
class World {
 public:
  virtual ~World() = default;
  /// This process's rank, and the number of processes.
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// True for the one process that writes the run's files and prints to the user.
  bool writes_files() const { return rank() == 0; }

  /// Ranks of this process's replicas among the replicas of all processes.
  struct LocalRanks {
    int first = 0;  // rank of this process's first replica
    int total = 0;  // number of replicas in all processes
  };
  /// `count`: number of replicas in this process.
  virtual LocalRanks local_ranks(int count) = 0;

  /// Replaces the values with their sums over all processes, added in rank order.
  virtual void all_reduce(std::span<double> values) = 0;
  /// Returns the maximum over all processes.
  virtual int64_t all_reduce_max(int64_t mine) = 0;
  /// Whether `mine` is true in any process.
  bool any(bool mine) { return all_reduce_max(mine ? 1 : 0) != 0; }
  /// Copies the bytes of process 0 to all processes.
  virtual void broadcast(std::span<std::byte> bytes) = 0;
  /// Reports that this process has failed: pending and later calls of the other processes throw Aborted
  /// (collective.h). Safe on any thread.
  virtual void abort() noexcept = 0;
};

/// The World of a run with a single process.
World& single_process();

}  // namespace dtrain
