// Collective operations among replicas. Each replica has one object, used by its thread; all members must
// make the same calls in the same order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "collective/range.h"
#include "collective/world.h"

namespace dtrain {

class Context;

/// Thrown by collective calls after another member of the group has called abort(). Users do not see this
/// exception: they see the error of the member that called abort().
class Aborted : public Error {
 public:
  Aborted() : Error("another replica failed") {}
};

/// A member of a group of replicas. Its collective calls exchange data through host memory. Every call except
/// abort() throws Aborted once a member has aborted.
class Collective {
 public:
  virtual ~Collective() = default;
  /// Return this member's rank in the group, and the number of members.
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Waits until all members have called barrier().
  virtual void barrier() = 0;
  /// Replaces `values` with their sums over all members, added in the order that a tree over the ranks
  /// determines (sum_tree.h). All members must pass the same number of values.
  virtual void all_reduce(std::span<double> values) = 0;
  /// Gathers the values `mine` of all members in `all`, in rank order. `all` must have size() * mine.size()
  /// elements. All members must pass the same number of values.
  virtual void all_gather(std::span<const double> mine, std::span<double> all) = 0;
  /// Sums arrays of all members and distributes the result. The elements in the range `mine` of `data` become
  /// the sums over all members, added as in all_reduce(). The ranges of the members must be disjoint. Until
  /// the next call, neither the other elements of `data` nor the arrays of the other members may change.
  virtual void reduce_scatter(float* data, Range mine) = 0;
  /// Waits until all members have called this function, and returns the pointers that they passed, by rank.
  /// The pointers remain valid until this member's next call. Used by replicas that share memory (host memory
  /// or the memory of one GPU) and read each other's arrays. The device must have finished writing the arrays
  /// before this call. Members must call barrier() after their last read of the arrays and before the next
  /// write.
  virtual std::span<float* const> share_pointers(float* mine) = 0;
  /// Makes every pending and later call of every member throw Aborted. Safe on any thread.
  virtual void abort() noexcept = 0;
};

/// Gathers n values of each member from `mine` to `all`, like Collective::all_gather(), but in the device
/// memory of `context`. Runs after the operations that were enqueued earlier, and before those enqueued
/// later. The data are copied through host memory, so the members may use different kinds of devices. Waits
/// for the GPU, so the call cannot be captured in a graph.
void all_gather(Collective& member, Context& context, const double* mine, double* all, int64_t n);
/// Calls all_gather() with n zeros. Must be called by a member that has no values, because all members must
/// take part in the collective call.
void all_gather_zeros(Collective& member, int64_t n);

/// Creates a group whose members are `size` threads of this process, and returns one object for each thread.
/// `spin`: whether waiting members busy-wait for about a millisecond before they sleep. This is faster only
/// if each thread has its own core.
std::vector<std::unique_ptr<Collective>> make_local_group(int size, bool spin);

/// A member of a group of replicas with one GPU each. Its collective calls exchange data in device memory.
/// Sums and copies run concurrently with the operations of the member's context. Each sum or copy waits for
/// the operations that were enqueued before it, but later operations wait for it only after join(). Gradients
/// can therefore be reduced bucket by bucket during the backward pass. The calls, including join(), can be
/// captured in a graph; then every member must capture and replay the same calls.
///
/// Between the first member's and the last member's call of a reduction, no member may make a CUDA call that
/// can wait for the devices. Examples are allocating or freeing memory, instantiating a graph, and launching
/// a kernel for the first time. Such a call may wait for a GPU whose reduction in turn waits for this member:
/// a deadlock. While a CapturedGraph that contains a member's calls is running, the member may make no other
/// call, because NCCL_GRAPH_MIXING_SUPPORT is off.
class DeviceCollective {
 public:
  virtual ~DeviceCollective() = default;
  /// Return this member's rank within this process, and the number of members in this process. The parameter
  /// `root` of the functions below is a rank among the members of all processes. These ranks are assigned
  /// process by process.
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Replaces the n numbers at `data` with the sums over all members, bitwise equal on every member.
  virtual void all_reduce(float* data, int64_t n) = 0;
  virtual void all_reduce(double* data, int64_t n) = 0;
  /// Copies the n numbers at `src` of member `root` to `dst` of every member. Other members' `src` is
  /// ignored.
  virtual void broadcast(const float* src, float* dst, int64_t n, int root) = 0;
  /// Sums the n numbers at `src` over all members, and writes the sums to `dst` of member `root`. Other
  /// members' `dst` is ignored.
  virtual void reduce(const float* src, float* dst, int64_t n, int root) = 0;
  /// Makes operations that are enqueued later wait for all collective calls enqueued here. A captured graph
  /// that contains collective calls must also contain a call of join().
  virtual void join() = 0;

  /// Throws Aborted if the group has been aborted. The host must call this function after it has waited for
  /// the device, and before it uses the results.
  virtual void check() = 0;
  /// Cancels the calls running on the devices and makes every later call of every member throw Aborted. Safe
  /// on any thread; returns at once.
  virtual void abort() noexcept = 0;
  /// Returns the message of an error that only NCCL has detected, such as a lost link; otherwise "". After
  /// such an error, other calls may never return, so the thread that monitors the devices calls this function
  /// repeatedly. Safe on any thread.
  virtual std::string failure() = 0;
};

/// Creates a group with one member for each context, in rank order. There must be at least one context, and
/// each must use a different GPU. The contexts belong to this process, and all processes of `world` join
/// theirs into one group. A member must outlive every CapturedGraph that captured its calls, because NCCL
/// waits until these graphs have been destroyed. Must not be called during a capture. Throws UserError if
/// NCCL is too old, and Error if NCCL is missing or fails.
std::vector<std::unique_ptr<DeviceCollective>> make_nccl_group(std::span<Context* const> contexts,
                                                               World& world);
/// Returns whether the NCCL library can be loaded.
bool nccl_available();
/// Measures NCCL's all-reduce over the first `gpus` GPUs of each process of `world`. Returns the throughput
/// in bytes per second: the size of one GPU's array divided by the time of the fastest of several rounds.
/// Allocates `bytes` on each GPU. All processes must call it. Throws the same errors as make_nccl_group().
double measure_all_reduce(int gpus, size_t bytes, World& world);
/// Returns the version of the loaded NCCL library, such as "2.28.9"; empty if there is none.
std::string nccl_version();
/// Sets environment variables that NCCL reads at startup, for the rest of the process. Variables that are
/// already set keep their values. The variables tell NCCL that no call runs outside a graph while a graph
/// with NCCL calls runs. If `deterministic` is true, they also make NCCL add numbers in the same order with
/// and without graph capture. main() calls this function with `false` before any other thread exists, because
/// setenv() is not safe while another thread calls getenv(). Deterministic runs call it again when their
/// configuration is known. This call sets only the variables for deterministic runs.
void set_nccl_environment(bool deterministic);

}  // namespace dtrain
