// How an array that one device's thread has computed comes to another's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/device.h"

namespace dtrain {

/// A one-way path between two contexts, each with a thread of its own or both with the same. What is sent
/// first is received first.
class Link {
 public:
  /// What the sender's array is to do until it is received: `lent`, it stays as it is until wait_received();
  /// `copied`, the link has room for copies, and the sender goes on.
  enum class Keeping { lent, copied };

  /// `bytes`: of the largest array. `most`: arrays that are sent and not received yet. `spin`: to wait busily
  /// for about a millisecond before sleeping; for threads that each have a core. Memory for copies is taken
  /// by the first that are sent.
  Link(Context& from, Context& to, size_t bytes, Keeping keeping, int most, bool spin);

  /// Whether the link has copies, one of the largest array's size for each that is under way; and whether
  /// they are the receiver's (else the sender's, which is the CPU).
  bool copies() const { return copies_; }
  bool copies_are_with_receiver() const;

  /// By the sender: sends what the operations that have been enqueued so far leave at `src`. Gives the
  /// array's number, from 1. The host waits while `most` arrays are sent and not received.
  uint64_t send(const void* src, size_t bytes);
  /// By the receiver: operations that are enqueued from now on find the array at `dst`. The host waits until
  /// it was sent, and until it is there where one of the two devices is the CPU.
  void receive(void* dst, size_t bytes);
  /// By the sender: operations that are enqueued from now on may write where the array of that number, and
  /// all before it, lay (which they may at any time where the link keeps copies). The host waits until it was
  /// received.
  void wait_received(uint64_t number);

  /// Makes every pending and later call throw Aborted. Safe from any thread; returns at once.
  void abort() noexcept;

 private:
  /// An array on its way.
  struct Entry {
    const void* data = nullptr;
    Buffer copy;  // where copies are kept, and where a GPU's array is to be seen by a CPU
    std::unique_ptr<Event> written, copied;
  };

  Buffer room_for_copy();
  Entry& entry(uint64_t number) { return entries_[number % entries_.size()]; }
  void wait(const std::atomic<uint64_t>& count, uint64_t number);

  Context &from_, &to_;
  size_t bytes_;
  bool copies_, spin_;
  std::vector<Entry> entries_;
  uint64_t next_ = 0;  // of the receiver: arrays that it has taken
  alignas(64) std::atomic<uint64_t> sent_{0};
  alignas(64) std::atomic<uint64_t> received_{0};
  std::atomic<bool> aborted_{false};
};

}  // namespace dtrain
