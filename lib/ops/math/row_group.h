// The interface of a group of threads that share the work on one row. rank() is the index of this thread in
// the group, and size() is the number of threads. reduce(value, combine) combines the values of all threads,
// and every thread gets the result. In functions that process a row, each thread processes the columns
// rank(), rank() + size(), and so on. The groups of a GPU are in lib/ops/cuda/reductions/groups.h.
#pragma once

#include <cstdint>
#include <math.h>

#include "base/host_device.h"

namespace dtrain::math {

struct Add {
  template <class T>
  DTRAIN_HOST_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};
/// Returns the larger number. Returns NaN only if both are NaN.
struct Max {
  DTRAIN_HOST_DEVICE float operator()(float a, float b) const { return ::fmaxf(a, b); }
};
struct Min {
  DTRAIN_HOST_DEVICE int32_t operator()(int32_t a, int32_t b) const { return a < b ? a : b; }
};

/// A group of one thread, as on the CPU.
struct OneThread {
  DTRAIN_HOST_DEVICE static constexpr int64_t rank() { return 0; }
  DTRAIN_HOST_DEVICE static constexpr int64_t size() { return 1; }
  template <class T, class Combine>
  DTRAIN_HOST_DEVICE T reduce(T value, const Combine&) const {
    return value;
  }
};

}  // namespace dtrain::math
