// Waiting busily, for threads that each have a core.
#pragma once

namespace dtrain {

/// Calls `done` until it is true, for about a millisecond at most: longer than any step's imbalance on a
/// small model.
template <class Done>
void spin_until(Done&& done) {
  constexpr int kSpins = 20000;
  for (int i = 0; i < kSpins && !done(); ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

}  // namespace dtrain
