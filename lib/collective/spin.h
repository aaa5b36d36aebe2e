// Busy-waiting, for threads that each have their own core.
#pragma once

namespace dtrain {

/// Calls `done` until it returns true, but stops after about a millisecond. This limit is long enough for the
/// waits between the threads within a step of a small model.
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
