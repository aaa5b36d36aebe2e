#include "collective/link.h"

#include "collective/collective.h"
#include "collective/spin.h"
#include "device/peer_access.h"

namespace dtrain {

Link::Link(Context& from, Context& to, size_t bytes, Keeping keeping, int most, bool spin)
    : from_(from),
      to_(to),
      bytes_(bytes),
      copies_(keeping == Keeping::copied || (from.on_gpu() && !to.on_gpu())),
      spin_(spin),
      entries_(static_cast<size_t>(most)) {
  if (!from.on_gpu()) return;
  if (to.on_gpu()) connect_gpus(from, to);
  for (Entry& entry : entries_) {
    entry.written = from.make_event();
    if (to.on_gpu()) entry.copied = to.make_event();
  }
}

bool Link::copies_are_with_receiver() const {
  return from_.on_gpu() || !to_.on_gpu();
}

Buffer Link::room_for_copy() {
  if (!copies_are_with_receiver()) return from_.allocate(bytes_);
  return from_.on_gpu() && !to_.on_gpu() ? from_.allocate_host(bytes_) : to_.allocate(bytes_);
}

/// Waits until `count` has reached `number`. abort() wakes sleeping threads by incrementing the counters.
void Link::wait(const std::atomic<uint64_t>& count, uint64_t number) {
  const auto come = [&] { return count.load(std::memory_order_acquire) >= number; };
  if (spin_) spin_until(come);
  for (uint64_t seen = count.load(std::memory_order_acquire); seen < number;
       seen = count.load(std::memory_order_acquire)) {
    if (aborted_.load(std::memory_order_acquire)) throw Aborted();
    count.wait(seen, std::memory_order_acquire);
  }
  if (aborted_.load(std::memory_order_acquire)) throw Aborted();
}

uint64_t Link::send(const void* src, size_t bytes) {
  const uint64_t number = sent_.load(std::memory_order_relaxed) + 1;
  wait_received(number > entries_.size() ? number - entries_.size() : 0);
  Entry& mine = entry(number);
  mine.data = src;
  if (copies_) {
    if (!mine.copy.data()) mine.copy = room_for_copy();
    from_.enqueue_copy(mine.copy.data(), src, bytes);
    mine.data = mine.copy.data();
  }
  if (from_.on_gpu()) mine.written->record();
  sent_.fetch_add(1, std::memory_order_release);
  sent_.notify_all();
  return number;
}

void Link::receive(void* dst, size_t bytes) {
  const uint64_t number = ++next_;
  wait(sent_, number);
  Entry& its = entry(number);
  if (!from_.on_gpu()) {
    to_.copy_to_device(dst, its.data, bytes);
  } else if (!to_.on_gpu()) {
    its.written->synchronize();
    to_.copy_to_device(dst, its.data, bytes);
  } else {
    to_.wait(*its.written);
    to_.enqueue_copy(dst, its.data, bytes);
    its.copied->record();
  }
  received_.fetch_add(1, std::memory_order_release);
  received_.notify_all();
}

void Link::wait_received(uint64_t number) {
  wait(received_, number);
  if (const auto& copied = entry(number).copied; copied && number > 0) from_.wait(*copied);
}

void Link::abort() noexcept {
  aborted_.store(true, std::memory_order_release);
  for (std::atomic<uint64_t>* count : {&sent_, &received_}) {
    count->fetch_add(1, std::memory_order_release);
    count->notify_all();
  }
}

}  // namespace dtrain
