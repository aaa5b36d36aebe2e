// The processes of a run.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/exit_deadline.h"
#include "collective/range.h"

namespace dtrain {

class Event;

/// Thrown by calls that wait for other processes after one of them has failed.
class ProcessFailed : public Error {
 public:
  using Error::Error;
};

/// The ranks of the replicas of all processes. Ranks are assigned process by process.
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
  /// Return the number of replicas of this process, and the number of replicas of all processes.
  int local() const { return counts[static_cast<size_t>(process)]; }
  int total() const { return static_cast<int>(of(static_cast<int>(counts.size()) - 1).end); }
};

/// For each process, by rank, a list of ranges of one array.
using PartsOfProcesses = std::vector<std::vector<Range>>;

/// Computes the sum of one array over all replicas of all processes, while the threads of the replicas
/// continue. The arrays are added in the order of the tree over the replicas' ranks (sum_tree.h). The bits of
/// the result therefore do not depend on how the replicas are divided among processes.
template <class T>
class BackgroundSum {
 public:
  virtual ~BackgroundSum() = default;
  /// Starts the sum. `sums`: for each node in subtrees(ranks.of(process), ranks.total()), an array with the
  /// sum over the replicas of the node. The arrays must not change until wait() returns. After wait(),
  /// sums[0] has the sum over all replicas. May be called on any thread.
  virtual void start(std::span<T* const> sums) = 0;
  /// Waits for the sum that the last call of start() has started. May be called on several threads. Throws
  /// ProcessFailed if another process has failed. In this case, the arrays may still be read and written
  /// until the object is destroyed, so they must be destroyed after it.
  virtual void wait() = 0;
  /// Returns the size, in bytes, of the host memory for data received from other processes.
  virtual size_t bytes() const = 0;
};

/// Performs all-gathers among all processes, concurrently with other calls of the World.
class ProcessGather {
 public:
  virtual ~ProcessGather() = default;
  /// Like World::all_gather(). May be called on any thread, but on only one thread of each process at a time.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
};

/// Sends messages to one other process and receives messages from it, one message at a time. Messages are
/// transferred in the background. Any thread may use the object, but not several threads at the same time.
class ProcessMessage {
 public:
  virtual ~ProcessMessage() = default;
  /// Starts to send a message. `bytes` must not change until wait() returns. Must not be called before the
  /// previous message has finished. If `after` is not null, the transfer begins once the operations recorded
  /// by this event have completed, such as a device's copy to `bytes`. The caller does not wait for these
  /// operations. The event must not be recorded again until wait() returns.
  virtual void send(std::span<const std::byte> bytes, const Event* after) = 0;
  /// Starts to receive a message that has exactly the size of `bytes`. If `after` is not null, the transfer
  /// begins once the operations recorded by this event have completed, such as a device's copy from `bytes`.
  /// The event must not be recorded again until wait() returns.
  virtual void receive(std::span<std::byte> bytes, const Event* after) = 0;
  /// Waits for the message that was started last. Returns at once if no message was started. Throws
  /// ProcessFailed if a process has failed.
  virtual void wait() = 0;
};

/// Communication among all processes of a run. Each process has one World, used by the thread that owns its
/// replicas. All processes must make the same calls in the same order. The processes use the World to agree
/// on totals, on stop signals, and on the steps at which checkpoints are due. All functions that communicate
/// throw ProcessFailed at once when a process has failed.
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
  /// Gathers the bytes `mine` of all processes in `all`, by rank. `all` must have size() * mine.size() bytes.
  /// All processes must pass the same number of bytes.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// Creates an object that performs all-gathers on any thread, not only on the thread that owns the
  /// replicas. All processes must create the same objects in the same order, on the thread that owns the
  /// replicas. The World must outlive the object.
  virtual std::unique_ptr<ProcessGather> make_gather() = 0;
  /// The number of channels for make_message(). Channels are numbered from 0.
  static constexpr int kChannels = 20000;
  /// Creates an object that exchanges messages with `process`, one at a time. Several objects may use the
  /// same channel between two processes; their messages are matched in order: the n-th receive that one
  /// process starts gets the message of the n-th send that the other process starts. Safe on any thread. The
  /// World must outlive the object.
  virtual std::unique_ptr<ProcessMessage> make_message(int process, int channel) = 0;
  /// Returns the text that process 0 has passed. The texts of the other processes are ignored.
  std::string broadcast_text(const std::string& text);
  /// Returns the texts of all processes, by rank.
  std::vector<std::string> all_gather_texts(const std::string& mine);
  /// Replaces each value by its maximum over all processes.
  void all_reduce_max(std::span<int64_t> values);
  /// Returns whether `mine` is true on any process.
  bool any(bool mine);

  /// Returns the ranks of the replicas. `count`: number of replicas of this process, at least 1.
  ReplicaRanks replica_ranks(int count);
  /// Computes the sums over all replicas of all processes and writes them to `sums`. The arrays are added in
  /// the same order as in a BackgroundSum. `mine`: the arrays of this process's replicas. Each has the length
  /// of `sums`.
  virtual void sum(const ReplicaRanks& ranks, std::span<const double* const> mine,
                   std::span<double> sums) = 0;
  /// Create objects that compute sums of n numbers in the background. All processes must create the same
  /// objects in the same order, on the thread that owns the replicas. The World must outlive the objects.
  virtual std::unique_ptr<BackgroundSum<float>> background_sum_of_floats(const ReplicaRanks& ranks,
                                                                         int64_t n) = 0;
  virtual std::unique_ptr<BackgroundSum<double>> background_sum_of_doubles(const ReplicaRanks& ranks,
                                                                           int64_t n) = 0;
  /// Like background_sum_of_floats(), but each process receives only the sum of its part of the array,
  /// parts[process]. After wait(), this part of sums[0] has the sum over all replicas. The other elements of
  /// sums[0] are unspecified.
  virtual std::unique_ptr<BackgroundSum<float>> background_sum_of_parts(const ReplicaRanks& ranks,
                                                                        std::vector<Range> parts) = 0;
  /// Computes the same sum as background_sum_of_parts(), and waits for it. `sums`: see
  /// BackgroundSum::start(). If the call throws, the arrays must not be changed or freed until release() has
  /// returned.
  virtual void sum_parts(const ReplicaRanks& ranks, std::vector<Range> parts,
                         std::span<float* const> sums) = 0;
  /// Exchanges the parts of an array among all processes: after the call, every process has the whole array.
  /// `parts`: for each process, by rank, the ranges of `values` that the process has. The ranges must not
  /// overlap. All processes must pass the same `parts`.
  virtual void all_gather_parts(const PartsOfProcesses& parts, std::span<float> values) = 0;
  /// Like all_gather_parts(), but only process 0 receives the parts of the other processes.
  virtual void gather_parts(const PartsOfProcesses& parts, std::span<float> values) = 0;
  /// Like all_gather_parts(), but without an internal copy of `values`. If the call throws, `values` must not
  /// be changed or freed until release() has returned.
  virtual void all_gather_parts_in_place(const PartsOfProcesses& parts, std::span<float> values) = 0;

  /// Measures the link to process `with`. In each round, a message of `bytes` bytes is sent to the process
  /// and back. The first round is not counted, and the following `rounds` rounds are measured. The process of
  /// lower rank returns the mean time of a round in seconds; the other process returns 0. Only these two
  /// processes make this call. Each of them must make it in the same order relative to its other calls.
  virtual double measure_round_trips(int with, int64_t bytes, int rounds) = 0;

  /// Reports that this process has failed: pending and later calls of all processes throw ProcessFailed. Only
  /// the first call has an effect. `is_user_error`: whether the reason is a UserError. If it is, all
  /// processes end with the exit code of a UserError. Safe on any thread; returns at once.
  virtual void abort(const std::string& why, bool is_user_error) noexcept = 0;
  /// After a failure, waits until calls, sums and messages that the failure has interrupted no longer access
  /// their memory. Must be called before this memory is freed. If this takes more than a second, the function
  /// ends the process, because calls of MPI may never return after another process has died. Before the call,
  /// the caller must have saved all data that must not be lost.
  virtual void release() noexcept {}
  /// Sets the time, in seconds, after which another process counts as failed if it gives no sign of life.
  virtual void set_peer_timeout(double /*seconds*/) {}
  /// Returns why a process has failed, or "" if no process has failed. Safe on any thread. Threads that wait
  /// for devices call this function, because an operation on a device may be waiting for another process.
  virtual std::string failure() const = 0;
  /// Returns whether another process has failed. Safe on any thread, and fast.
  virtual bool other_has_failed() const noexcept { return false; }
  /// Throws ProcessFailed if another process has failed. Call this function during long computations that do
  /// not wait for other processes.
  void check_others() const {
    if (other_has_failed()) throw ProcessFailed(failure());
  }
  /// Sets the time, in seconds, after which this process counts as failed if it hangs. A process hangs if it
  /// neither computes, nor reads data, nor waits for other processes. 0, the initial value, means no limit.
  virtual void set_hang_limit(double /*seconds*/) {}
  /// Returns `message`, an error message of this process, in the form that is shown to users. If there are
  /// several processes, the message is extended by the process's name, the step and the phase.
  virtual std::string complete_error(const std::string& message) const { return message; }
  /// Returns how this process ends with the error `why` at a deadline: it reports the error to the other
  /// processes and, if it is process 0, prints the error. The World must outlive the deadline.
  ExitDeadline::Ending end_with_error(const std::string& why, std::chrono::duration<double> limit);

  /// The current activity of a process. It is shown in messages about processes that fail or make no
  /// progress.
  struct Position {
    const char* phase = "";  // current work of the process, such as "reading samples"
    int64_t step = 0;        // number of the step in the run, from 1
    bool waits = false;      // whether the process waits for other processes
  };
  /// Records this process's position. `phase` must be a string literal, because only the pointer is stored.
  void set_position(const char* phase, int64_t step) noexcept {
    phase_ = phase;
    step_ = step;
  }
  /// Returns the process's position. May be called on any thread.
  Position position() const noexcept { return {phase_, step_, waiting_ > 0}; }

 protected:
  /// While an object of this class exists, the process counts as waiting for other processes.
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
