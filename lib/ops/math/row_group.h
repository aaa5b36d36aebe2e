// The threads that share the work on one row. A group has rank() and size(); reduce(value, combine) returns
// the combined values of all threads to each of them. In functions of a row, each thread works on the columns
// rank(), rank() + size(), and so on. lib/ops/cuda/reductions/groups.h has the groups of a GPU.
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
/// The larger number; NaN only if both are NaN.
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
