// Sharing a loop among a context's threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/cpu/openmp.h"

namespace dtrain::cpu {

/// Work on fewer elements than these is done sooner than it is shared: entering and leaving an OpenMP region
/// costs about a microsecond.
constexpr int64_t kWorthSharing = 8192;

/// The place in [0, n) where share `index` of `shares` begins. Shares are of whole units, the same every
/// time.
inline int64_t share_begin(int64_t n, int64_t unit, int shares, int index) {
  const int64_t units = (n + unit - 1) / unit;
  return std::min(n, units * index / shares * unit);
}

/// Calls body(begin, end, thread) on each thread's share of [0, n), which begins at a multiple of `unit`; an
/// index stands for `work` elements. Work that is not worth sharing is body(0, n, 0) on this thread, with no
/// OpenMP region.
template <class Body>
void parallel(int threads, int64_t n, int64_t unit, int64_t work, Body&& body) {
  if (threads == 1 || n * work < kWorthSharing) {
    body(int64_t{0}, n, 0);
    return;
  }
  openmp_region(threads, [&](int thread, int shares) {
    const int64_t begin = share_begin(n, unit, shares, thread),
                  end = share_begin(n, unit, shares, thread + 1);
    if (begin < end) body(begin, end, thread);
  });
}

}  // namespace dtrain::cpu
