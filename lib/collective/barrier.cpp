#include "collective/barrier.h"

#include "collective/collective.h"

namespace dtrain {

namespace {
/// Rounds of looking before a thread sleeps: about a millisecond, longer than any step's imbalance on a small
/// model.
constexpr int kSpins = 20000;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}
}  // namespace

void Barrier::arrive_and_wait() {
  const uint32_t generation = generation_.load(std::memory_order_acquire);
  if (aborted_.load(std::memory_order_acquire)) throw Aborted();
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
  } else {
    for (int i = 0; spin_ && i < kSpins && generation_.load(std::memory_order_acquire) == generation; ++i)
      pause();
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
