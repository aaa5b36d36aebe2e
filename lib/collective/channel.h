// A one-way channel between two slots of a replica.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dtrain {

/// A channel from one slot to another. Arrays arrive in the order in which they are sent. Each end is used by
/// the thread of its slot.
class Channel {
 public:
  virtual ~Channel() = default;

  /// Called by the sender. Sends the contents that `src` has after the operations enqueued so far. Returns
  /// the array's number, counted from 1. If the maximum number of arrays is in flight, blocks the host until
  /// an array has been received.
  virtual uint64_t send(const void* src, size_t bytes) = 0;
  /// Called by the receiver to announce that it will call receive() for one more array. If the sender is in
  /// another process, the channel starts to receive the array early. Several channels may lead from the
  /// sender's slot to the receiver's slot. In this case, the calls of expect() on these channels must have
  /// the same order as the sender's calls of send() in one part of the plan (Plan::expect()).
  virtual void expect() {}
  /// Called by the receiver. Operations that are enqueued after this call can read the array at `dst`. Blocks
  /// the host until the array has been sent. If one of the devices is the CPU, the call also waits until the
  /// array has arrived.
  virtual void receive(void* dst, size_t bytes) = 0;
  /// Called by the sender. Operations that are enqueued after this call may overwrite array `number` and all
  /// earlier arrays. Only needed if the channel keeps no copies. Blocks the host until the array has been
  /// received.
  virtual void wait_received(uint64_t number) = 0;

  /// Makes every pending and later call throw Aborted. Safe on any thread; returns at once. Has no effect on
  /// a channel between processes, because such a channel fails together with its World.
  virtual void abort() noexcept = 0;
};

}  // namespace dtrain
