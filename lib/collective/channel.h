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
  /// the array's number, counted from 1. Blocks the host while the maximum number of arrays is in flight.
  virtual uint64_t send(const void* src, size_t bytes) = 0;
  /// Called by the receiver before receive(), once for each array, in the order in which the sender will send
  /// the arrays of all its channels to the receiver's slot in one part of the plan (Plan::expect()). Starts
  /// to receive early if the sender is in another process.
  virtual void expect() {}
  /// Called by the receiver. Operations that are enqueued after this call find the array at `dst`. Blocks the
  /// host until the array was sent and, if one of the devices is the CPU, until it has arrived.
  virtual void receive(void* dst, size_t bytes) = 0;
  /// Called by the sender. Operations that are enqueued after this call may overwrite array `number` and all
  /// arrays before it. Only needed if the channel keeps no copies. Blocks the host until the array was
  /// received.
  virtual void wait_received(uint64_t number) = 0;

  /// Makes every pending and later call throw Aborted. Safe on any thread; returns at once. Channels between
  /// processes fail together with their World instead.
  virtual void abort() noexcept = 0;
};

}  // namespace dtrain
