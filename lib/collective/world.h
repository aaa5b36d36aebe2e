// The processes of a run.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "collective/range.h"

namespace dtrain {

class Event;

/// Thrown by calls that wait for other processes after one of them has failed.
class ProcessFailed : public Error {
 public:
  using Error::Error;
};

/// The ranks of replicas, which are numbered over all processes, process by process.
struct ReplicaRanks {
  int process = 0;          // this process's rank
  std::vector<int> counts;  // number of replicas of each process, by rank

  /// Returns the ranks of the replicas of process `rank`.
  Range of(int rank) const {
    Range ranks;
    for (int i = 0; i <= rank; ++i) ranks = {ranks.end, ranks.end + counts[static_cast<size_t>(i)]};
    return ranks;
  }
  /// Returns the rank of this process's first replica.
  int first() const { return static_cast<int>(of(process).begin); }
  /// Return the number of replicas of this process, and of all processes.
  int local() const { return counts[static_cast<size_t>(process)]; }
  int total() const { return static_cast<int>(of(static_cast<int>(counts.size()) - 1).end); }
};

/// A list of ranges of one array for each process, by rank.
using PartsOfProcesses = std::vector<std::vector<Range>>;

/// The sum of one array over all replicas of all processes, computed while the threads of the replicas
/// continue. The arrays are added in the order of the tree over the replicas' ranks (sum_tree.h), so the bits
/// do not depend on how the replicas are divided among processes.
template <class T>
class BackgroundSum {
 public:
  virtual ~BackgroundSum() = default;
  /// Starts the sum. `sums`: an array for each of the nodes subtrees(ranks.of(process), ranks.total()), with
  /// the sum over the node. The arrays must not change until wait() returns; sums[0] then has the sum over
  /// all replicas. May be called on any thread.
  virtual void start(std::span<T* const> sums) = 0;
  /// Waits for the sum that was started last. May be called on several threads. Throws ProcessFailed if
  /// another process has failed.
  virtual void wait() = 0;
  /// Returns the bytes of host memory for the arrays of other processes.
  virtual size_t bytes() const = 0;
};

/// An all-gather among all processes that runs at the same time as other calls.
class ProcessGather {
 public:
  virtual ~ProcessGather() = default;
  /// Like World::all_gather(). May be called on any thread, but on only one thread of each process at a time.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
};

/// Sends messages to one other process and receives messages from it, one at a time, while threads continue.
/// Any thread may use it, but only one at a time.
class ProcessMessage {
 public:
  virtual ~ProcessMessage() = default;
  /// Starts to send; `bytes` must not change until wait() returns. Must not be called while a message is
  /// under way. If `after` is not null, the transfer begins once the operations before this event have
  /// completed, such as a device's copy to `bytes`; the caller does not wait for them. The event must not be
  /// recorded again until wait() returns.
  virtual void send(std::span<const std::byte> bytes, const Event* after) = 0;
  /// Starts to receive a message of exactly this size. `after`: as for send(), such as a device's copy from
  /// `bytes`.
  virtual void receive(std::span<std::byte> bytes, const Event* after) = 0;
  /// Waits for the message that was started last; returns at once if there was none. Throws ProcessFailed.
  virtual void wait() = 0;
};

/// Communication among all processes of a run. Each process has one World, used by the thread that owns its
/// replicas. All processes must make the same calls in the same order. The World is used to agree on totals,
/// stop signals and due checkpoints. All functions that communicate throw ProcessFailed at once when a
/// process has failed.
class World {
 public:
  virtual ~World() = default;
  /// Return this process's rank, and the number of processes.
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Returns true in the one process that writes the run's files and prints to the user.
  bool writes_files() const { return rank() == 0; }

  /// Copies the bytes of process 0 to all processes.
  virtual void broadcast(std::span<std::byte> bytes) = 0;
  /// Fills `all`, which has size() * mine.size() bytes, with the processes' `mine` by rank. All processes
  /// must pass the same number of bytes.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// Creates an all-gather for another thread than the one that owns the replicas. All processes must create
  /// the same all-gathers in the same order, on the thread that owns the replicas. The World must outlive the
  /// result.
  virtual std::unique_ptr<ProcessGather> make_gather() = 0;
  /// The number of channels of make_message(), which are numbered from 0.
  static constexpr int kChannels = 20000;
  /// Creates an object that exchanges messages with `process`, one at a time. Within one channel between two
  /// processes, the n-th receive that is started gets the message of the n-th send that is started. Safe on
  /// any thread. The World must outlive the object.
  virtual std::unique_ptr<ProcessMessage> make_message(int process, int channel) = 0;
  /// Returns the text of process 0.
  std::string broadcast_text(const std::string& text);
  /// Returns the texts of all processes, by rank.
  std::vector<std::string> all_gather_texts(const std::string& mine);
  /// Replaces each value by its maximum over all processes.
  void all_reduce_max(std::span<int64_t> values);
  /// Returns whether `mine` is true on any process.
  bool any(bool mine);

  /// Returns the ranks of the replicas. `count`: number of replicas of this process, at least 1.
  ReplicaRanks replica_ranks(int count);
  /// Writes the sums over all replicas of all processes to `sums`, added like a BackgroundSum. `mine`: the
  /// arrays of this process's replicas, as long as `sums`.
  virtual void sum(const ReplicaRanks& ranks, std::span<const double* const> mine,
                   std::span<double> sums) = 0;
  /// Create sums of n numbers. All processes must create the same sums in the same order, on the thread that
  /// owns the replicas. The World must outlive them.
  virtual std::unique_ptr<BackgroundSum<float>> background_sum_of_floats(const ReplicaRanks& ranks,
                                                                         int64_t n) = 0;
  virtual std::unique_ptr<BackgroundSum<double>> background_sum_of_doubles(const ReplicaRanks& ranks,
                                                                           int64_t n) = 0;
  /// Creates a sum of an array of which each process receives only its part, parts[process]. After wait(),
  /// this part of sums[0] has the sum over all replicas; its other parts are unspecified.
  virtual std::unique_ptr<BackgroundSum<float>> background_sum_of_parts(const ReplicaRanks& ranks,
                                                                        std::vector<Range> parts) = 0;
  /// Runs background_sum_of_parts() and waits for it. `sums` is that of BackgroundSum::start(). After an
  /// exception, the memory may still be in use, as after all_gather_parts_in_place().
  virtual void sum_parts(const ReplicaRanks& ranks, std::vector<Range> parts,
                         std::span<float* const> sums) = 0;
  /// Fills in an array of which each process has a part: every process receives the parts of the others.
  /// `parts`: the ranges of `values` that each process has, by rank, which must not overlap. All processes
  /// must pass the same parts.
  virtual void all_gather_parts(const PartsOfProcesses& parts, std::span<float> values) = 0;
  /// Like all_gather_parts(), but only process 0 receives the parts of the others.
  virtual void gather_parts(const PartsOfProcesses& parts, std::span<float> values) = 0;
  /// Like all_gather_parts(), without a copy of `values`. If the call throws, `values` must not be changed or
  /// freed until release() has returned.
  virtual void all_gather_parts_in_place(const PartsOfProcesses& parts, std::span<float> values) = 0;

  /// Sends a message of this many bytes to process `with` and back, `rounds` times after a first one that is
  /// not counted, to measure the link. In the process of lower rank, returns the mean seconds of a round; in
  /// the other process, returns 0. Only these two processes make the call, in the same order as their other
  /// calls.
  virtual double measure_round_trips(int with, int64_t bytes, int rounds) = 0;

  /// Reports that this process has failed: pending and later calls of all processes throw ProcessFailed. Only
  /// the first call has an effect. `is_user_error`: the reason is a UserError, so that all processes end with
  /// its exit code. Safe on any thread; returns at once.
  virtual void abort(const std::string& why, bool is_user_error) noexcept = 0;
  /// Waits until the calls, sums and messages that a failure has ended no longer use memory. Must be called
  /// before that memory is freed. Ends the process if this takes more than a second, because calls of MPI may
  /// never return after another process has died. The caller must have saved all data that must not be lost.
  virtual void release() noexcept {}
  /// Sets the seconds without a sign of life after which another process counts as failed.
  virtual void set_peer_timeout(double /*seconds*/) {}
  /// Returns why a process has failed; "" if none has. Safe on any thread. Threads that wait for devices call
  /// it, because a device's operations may wait for another process.
  virtual std::string failure() const = 0;
  /// Returns whether another process has failed. Safe on any thread, and fast.
  virtual bool other_has_failed() const noexcept { return false; }
  /// Throws ProcessFailed if another process has failed. Long computations that wait for no other process
  /// call it.
  void check_others() const {
    if (other_has_failed()) throw ProcessFailed(failure());
  }
  /// Sets the seconds after which this process counts as failed if it hangs, that is, if it neither computes
  /// or reads anything nor waits for other processes. 0, the initial value, means never.
  virtual void set_hang_limit(double /*seconds*/) {}
  /// Returns an error message of this process for users: with the process's name, the step and the phase, if
  /// there are several processes.
  virtual std::string complete_error(const std::string& message) const { return message; }

  /// The activity of a process, for messages about processes that fail or make no progress.
  struct Position {
    const char* phase = "";  // current work of the process, such as "reading samples"
    int64_t step = 0;        // number of the step in the run, from 1
    bool waits = false;      // whether the process waits for other processes
  };
  /// Records this process's position. `phase`: a literal.
  void set_position(const char* phase, int64_t step) noexcept {
    phase_ = phase;
    step_ = step;
  }
  /// Returns the process's position. May be called on any thread.
  Position position() const noexcept { return {phase_, step_, waiting_ > 0}; }

 protected:
  /// Counts a call that waits for other processes.
  class Waiting {
   public:
    explicit Waiting(World& world) : world_(world) { ++world_.waiting_; }
    ~Waiting() { --world_.waiting_; }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    World& world_;
  };

 private:
  std::atomic<const char*> phase_{"starting"};
  std::atomic<int64_t> step_{0};
  std::atomic<int> waiting_{0};
};

/// Returns the World of a run with a single process.
World& single_process();

}  // namespace dtrain
