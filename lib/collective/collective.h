// Collective operations among replicas. One object a replica, used by its thread; every member must make the
// same calls in the same order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "collective/world.h"

namespace dtrain {

class Context;

/// Thrown by the calls of a group's other members once one of them has called abort: never the error to show.
class Aborted : public Error {
 public:
  Aborted() : Error("another replica failed") {}
};

/// A contiguous part of a flat buffer: [begin, end).
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

/// What two ranges have in common; an empty range where that is nothing.
inline Range overlap(Range a, Range b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

/// Part `index` of [0, n) cut into `parts` contiguous pieces of whole grains (but for the end of the last),
/// whose numbers of grains differ by at most one.
Range part_of(int64_t n, int index, int parts, int64_t grain = 1);

/// Collectives through the host's memory. Every call but abort() throws Aborted once a member has aborted.
class Collective {
 public:
  virtual ~Collective() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  virtual void barrier() = 0;
  /// `values` become the sums over all members, added in the order of ranks. All pass as many.
  virtual void all_reduce(std::span<double> values) = 0;
  /// `all`, of size() * mine.size() values, becomes the members' `mine` in the order of ranks. All pass as
  /// many.
  virtual void all_gather(std::span<const double> mine, std::span<double> all) = 0;
  /// Of n floats at `data`, this member's part (part_of(n, rank, size, 16), which is returned) becomes the
  /// sum over all members, added in the order of ranks. The rest of `data`, and everybody else's, must stay
  /// untouched until the next call.
  virtual Range reduce_scatter(float* data, int64_t n) = 0;
  /// Waits for all members and gives the pointers that they passed, by rank, until this member's next call.
  /// For replicas that share a memory, the host's or one GPU's, and read each other's arrays: the device must
  /// be done with them before, and a barrier stand between the last reading and the next writing.
  virtual std::span<float* const> share_pointers(float* mine) = 0;
  /// Makes every pending and later call of every member throw Aborted. Safe from any thread.
  virtual void abort() noexcept = 0;
};

/// all_gather of n values each, in the memory of each member's device: after the operations that were
/// enqueued before, ahead of those that follow. By way of the host, so that the devices may differ; a GPU is
/// waited for, and this cannot be captured.
void all_gather(Collective& member, Context& context, const double* mine, double* all, int64_t n);
/// The counterpart of all_gather() for a member without values: the others see zeros.
void all_gather_zeros(Collective& member, int64_t n);

/// A group of `size` threads of this process. Members wait by spinning while each has a core of its own
/// (`spin`), else asleep.
std::vector<std::unique_ptr<Collective>> make_local_group(int size, bool spin);

/// By way of the devices' memory, among replicas that have a GPU each. Sums and copies are enqueued beside
/// the operations of the member's context: each waits for the operations that were enqueued before it, and
/// later operations wait for it only after join(). So gradients can be summed bucket by bucket while
/// backward goes on. All of this can be captured; every member must then capture, and replay, alike.
///
/// From the first member's sum to the last one's, no member may make a call that can wait for the devices:
/// allocating, freeing, making a graph, launching a kernel for the first time. That may wait for a GPU whose
/// sum waits for this member. While a replayed CapturedGraph with a member's calls runs, the member may make
/// no other call (NCCL_GRAPH_MIXING_SUPPORT is off).
class DeviceCollective {
 public:
  virtual ~DeviceCollective() = default;
  /// This member's place among this process's members, and their number. `root` counts likewise: it is the
  /// rank among all only where World::size() is 1.
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// The n numbers at `data` become the sums over all members, the same bits everywhere.
  virtual void all_reduce(float* data, int64_t n) = 0;
  virtual void all_reduce(double* data, int64_t n) = 0;
  /// The n numbers at the member `root`'s `src`, which is of no meaning to the others, come to everyone's
  /// `dst`.
  virtual void broadcast(const float* src, float* dst, int64_t n, int root) = 0;
  /// The sums of the n numbers at everyone's `src` come to `root`'s `dst`, which is of no meaning to the
  /// others.
  virtual void reduce(const float* src, float* dst, int64_t n, int root) = 0;
  /// Operations enqueued from now on wait for all that was enqueued here. What a CapturedGraph captures it
  /// must join.
  virtual void join() = 0;

  /// Throws Aborted where the group was aborted: for the host to call once it has waited for the device, and
  /// before it believes the results.
  virtual void check() = 0;
  /// Ends what runs on the devices and makes every later call of every member throw Aborted. Safe from any
  /// thread; returns at once.
  virtual void abort() noexcept = 0;
  /// The text of an error that only NCCL has seen, such as a lost link; "" where there is none. Whoever
  /// watches the devices asks for it, as no call may return then. Safe from any thread.
  virtual std::string failure() = 0;
};

/// A group over these contexts of different GPUs, by rank; at least one. The contexts are this process's; all
/// processes of `world` join theirs to one group. A member must outlive every CapturedGraph that captured its
/// calls, as NCCL waits for these to be destroyed. Not to be called during a capture. Throws UserError where
/// NCCL is too old, Error where it is absent or fails.
std::vector<std::unique_ptr<DeviceCollective>> make_nccl_group(std::span<Context* const> contexts,
                                                               World& world = single_process());
bool nccl_available();
/// Bytes of gradients a second that NCCL sums over the first so many GPUs: each one's array over the time of
/// its sum, the best of a few. Takes that memory on each. Throws Error as make_nccl_group does.
double measure_all_reduce(int gpus, size_t bytes);
/// "2.28.9", of the library that this process has loaded; empty where there is none.
std::string nccl_version();
/// Sets the environment variables that NCCL reads when it starts, unless they are set: groups enqueue no call
/// outside of a graph while a graph that calls NCCL runs; where `deterministic`, sums have one order,
/// captured or not. They stay for the process. To be called before a run starts threads, as setenv() is not
/// safe while another thread calls getenv().
void set_nccl_environment(bool deterministic);

}  // namespace dtrain
