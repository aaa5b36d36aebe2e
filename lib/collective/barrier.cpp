#include "collective/barrier.h"

#include "collective/collective.h"
#include "collective/spin.h"

namespace dtrain {

void Barrier::arrive_and_wait() {
  const uint32_t generation = generation_.load(std::memory_order_acquire);
  if (aborted_.load(std::memory_order_acquire)) throw Aborted();
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
  } else {
    if (spin_) spin_until([&] { return generation_.load(std::memory_order_acquire) != generation; });
    while (generation_.load(std::memory_order_acquire) == generation) generation_.wait(generation);
  }
  if (aborted_.load(std::memory_order_acquire)) throw Aborted();
}

void Barrier::abort() noexcept {
  aborted_.store(true, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
}

}  // namespace dtrain
