// The processes that a run is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dtrain {

/// Every process has one, used by the thread that owns its replicas. All processes must make the same calls
/// in the same order: what they agree on (totals, stop signals, whether a checkpoint is due) they learn here.
class World {
 public:
  virtual ~World() = default;
  /// This process's rank, and the number of processes.
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// One process writes the run's files and speaks to the user.
  bool writes_files() const { return rank() == 0; }

  /// The ranks that a process's replicas have among those of all processes.
  struct LocalRanks {
    int first = 0;  // of this process's
    int total = 0;  // of all processes'
  };
  /// `count`: of the replicas of this process.
  virtual LocalRanks local_ranks(int count) = 0;

  /// The values become their sums over all processes, added in the order of ranks.
  virtual void all_reduce(std::span<double> values) = 0;
  /// The greatest of the processes' values.
  virtual int64_t all_reduce_max(int64_t mine) = 0;
  /// Whether any process says so.
  bool any(bool mine) { return all_reduce_max(mine ? 1 : 0) != 0; }
  /// The bytes of process 0 come to all.
  virtual void broadcast(std::span<std::byte> bytes) = 0;
  /// This process has failed: the others' calls, pending and later, throw Aborted (collective.h). Safe from
  /// any thread.
  virtual void abort() noexcept = 0;
};

/// The World of a run that is this process alone.
World& single_process();

}  // namespace dtrain
