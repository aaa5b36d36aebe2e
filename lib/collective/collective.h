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

/// Thrown by the calls of a group's other members after one member has called abort(). Users are shown the
/// error of that member instead.
class Aborted : public Error {
 public:
  Aborted() : Error("another replica failed") {}
};

/// A member of a group of replicas, whose collective calls exchange data through host memory. Every call
/// except abort() throws Aborted once a member has aborted.
class Collective {
 public:
  virtual ~Collective() = default;
  /// Return this member's rank in the group, and the number of members.
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Waits until all members have called it.
  virtual void barrier() = 0;
  /// Replaces `values` with their sums over all members, added in the order of a tree over their ranks
  /// (sum_tree.h). All members must pass the same number of values.
  virtual void all_reduce(std::span<double> values) = 0;
  /// Fills `all`, which has size() * mine.size() values, with the members' `mine` in rank order. All members
  /// must pass the same number of values.
  virtual void all_gather(std::span<const double> mine, std::span<double> all) = 0;
  /// Replaces the elements `mine` of `data` with the sums over all members, added like all_reduce(). The
  /// members' ranges must be disjoint. The rest of `data`, and the other members' `data`, must not change
  /// until the next call.
  virtual void reduce_scatter(float* data, Range mine) = 0;
  /// Waits for all members and returns the pointers that they passed, by rank, valid until this member's next
  /// call. For replicas that share memory (the host's or one GPU's) and read each other's arrays. Before this
  /// call the device must have finished writing the arrays; a barrier must separate the last read from the
  /// next write.
  virtual std::span<float* const> share_pointers(float* mine) = 0;
  /// Makes every pending and later call of every member throw Aborted. Safe on any thread.
  virtual void abort() noexcept = 0;
};

/// Gathers n values of each member, as Collective::all_gather(), from `mine` to `all` in the context's device
/// memory. Runs after the operations that were enqueued earlier, and before those enqueued later. The data go
/// through the host, so the members' devices may differ. Waits for a GPU, so it cannot be captured.
void all_gather(Collective& member, Context& context, const double* mine, double* all, int64_t n);
/// Joins the other members' all_gather() with zeros, for a member that has no values.
void all_gather_zeros(Collective& member, int64_t n);

/// Creates a group of `size` threads of this process. `spin`: whether members busy-wait for about a
/// millisecond before they sleep, which helps only if each thread has its own core.
std::vector<std::unique_ptr<Collective>> make_local_group(int size, bool spin);

/// A member of a group of replicas with a GPU each, whose collective calls exchange data in device memory.
/// Sums and copies run concurrently with the operations of the member's context: each waits for the
/// operations enqueued before it, and later operations wait for it only after join(). Gradients can thus be
/// reduced bucket by bucket during the backward pass. Both the calls and join() can be captured; every member
/// must then capture and replay the same calls.
///
/// From the first member's reduction to the last one's, no member may make a call that can wait for the
/// devices (allocating, freeing, instantiating a graph, launching a kernel for the first time): such a call
/// may wait for a GPU whose reduction waits for this member. While a replayed CapturedGraph with a member's
/// calls runs, the member may make no other call (NCCL_GRAPH_MIXING_SUPPORT is off).
class DeviceCollective {
 public:
  virtual ~DeviceCollective() = default;
  /// Return this member's rank within this process, and the number of members in this process. `root` below
  /// is a rank among the members of all processes, which are numbered process by process.
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Replaces the n numbers at `data` with the sums over all members, bitwise equal on every member.
  virtual void all_reduce(float* data, int64_t n) = 0;
  virtual void all_reduce(double* data, int64_t n) = 0;
  /// Copies the n numbers at `src` of member `root` to `dst` of every member. Other members' `src` is
  /// ignored.
  virtual void broadcast(const float* src, float* dst, int64_t n, int root) = 0;
  /// Writes the sums of all members' n numbers at `src` to `dst` of member `root`. Other members' `dst` is
  /// ignored.
  virtual void reduce(const float* src, float* dst, int64_t n, int root) = 0;
  /// Makes later operations wait for all calls enqueued here. A captured graph must join the calls that it
  /// captured.
  virtual void join() = 0;

  /// Throws Aborted if the group was aborted. The host must call this after waiting for the device, before it
  /// uses the results.
  virtual void check() = 0;
  /// Cancels the calls running on the devices and makes every later call of every member throw Aborted. Safe
  /// on any thread; returns at once.
  virtual void abort() noexcept = 0;
  /// Returns the text of an error that only NCCL has detected, such as a lost link; otherwise "". The thread
  /// that monitors the devices calls this function repeatedly, since other calls may never return after such
  /// an error. Safe on any thread.
  virtual std::string failure() = 0;
};

/// Creates a group over these contexts, by rank: at least one, each on a different GPU. The contexts belong
/// to this process; all processes of `world` join theirs into one group. A member must outlive every
/// CapturedGraph that captured its calls, because NCCL waits for these graphs to be destroyed. Must not be
/// called during a capture. Throws UserError if NCCL is too old, Error if it is missing or fails.
std::vector<std::unique_ptr<DeviceCollective>> make_nccl_group(std::span<Context* const> contexts,
                                                               World& world);
/// Returns whether the NCCL library can be loaded.
bool nccl_available();
/// Measures NCCL's all-reduce over the first `gpus` GPUs of each process of `world`: bytes of one GPU's array
/// divided by the time of the reduction, best of several rounds. Allocates `bytes` on each GPU. All processes
/// must call it. Throws Error as make_nccl_group() does.
double measure_all_reduce(int gpus, size_t bytes, World& world);
/// Returns the version of the loaded NCCL library, such as "2.28.9"; empty if there is none.
std::string nccl_version();
/// Sets environment variables that NCCL reads at startup, unless they are already set, for the rest of the
/// process. They tell NCCL that no call runs outside a graph while a graph with NCCL calls runs and, if
/// `deterministic`, to add in one fixed order, captured or not. Call it before the run starts threads:
/// setenv() is not safe while another thread calls getenv().
void set_nccl_environment(bool deterministic);

}  // namespace dtrain
