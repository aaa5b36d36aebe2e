// Transfers arrays between the threads of two devices.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "collective/channel.h"
#include "device/device.h"

namespace dtrain {

/// A channel between two contexts of this process, which may run on different threads or on the same one.
class Link final : public Channel {
 public:
  /// How the data of a sent array are kept until the array is received. `lent`: the data stay in the sender's
  /// array, which must not change before wait_received() has returned. `copied`: the link makes a copy, so
  /// the sender may change its array at once.
  enum class Keeping { lent, copied };

  /// `bytes`: size of the largest array. `most`: maximum number of arrays in flight, that is, sent but not
  /// yet received. `spin`: whether waiting threads busy-wait for about a millisecond before they sleep, which
  /// is faster only if each thread has its own core. Memory for copies is allocated on first use.
  Link(Context& from, Context& to, size_t bytes, Keeping keeping, int most, bool spin);

  /// Returns whether the link makes copies of sent arrays. It then has one buffer of `bytes` for each array
  /// in flight.
  bool copies() const { return copies_; }
  /// Returns true if copies of sent arrays are in the memory of the receiver's device. Returns false if a CPU
  /// sends to a GPU; the copies are then in host memory.
  bool copies_are_with_receiver() const;

  uint64_t send(const void* src, size_t bytes) override;
  void receive(void* dst, size_t bytes) override;
  void wait_received(uint64_t number) override;
  void abort() noexcept override;

 private:
  /// An array that was sent and has not been received yet.
  struct Entry {
    const void* data = nullptr;
    Buffer copy;  // used if the link keeps copies, or for GPU to CPU transfers
    std::unique_ptr<Event> written, copied;
  };

  Buffer room_for_copy();
  Entry& entry(uint64_t number) { return entries_[number % entries_.size()]; }
  void wait(const std::atomic<uint64_t>& count, uint64_t number);

  Context &from_, &to_;
  size_t bytes_;
  bool copies_, spin_;
  std::vector<Entry> entries_;
  uint64_t next_ = 0;  // number of arrays that the receiver has taken
  alignas(64) std::atomic<uint64_t> sent_{0};
  alignas(64) std::atomic<uint64_t> received_{0};
  std::atomic<bool> aborted_{false};
};

}  // namespace dtrain
