// Divides a loop among the threads of a context.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/cpu/openmp.h"

namespace dtrain::cpu {

/// Minimum number of elements for which several threads are used. Entering and leaving an OpenMP region costs
/// about a microsecond, so several threads are not worthwhile for fewer elements.
constexpr int64_t kWorthSharing = 8192;

/// Divides [0, n) into `shares` shares, and returns the beginning of share `index`. Shares consist of whole
/// units and depend only on the arguments.
inline int64_t share_begin(int64_t n, int64_t unit, int shares, int index) {
  const int64_t units = (n + unit - 1) / unit;
  return std::min(n, units * index / shares * unit);
}

/// Calls body(begin, end, thread) on each thread's share of [0, n), which begins at a multiple of `unit`.
/// Each index counts as `work` elements. If there is too little work, calls body(0, n, 0) on this thread,
/// without an OpenMP region.
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
