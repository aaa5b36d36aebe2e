// Reductions over the threads of a warp or a block, in a fixed order. Every thread gets the same result, bit
// by bit. All threads of the warp or block must call these functions.
#pragma once

#include <cstdint>

#include "ops/cuda/types.h"
#include "ops/math/row_group.h"

namespace dtrain::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

using math::Add;
using math::Max;

struct Multiply {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a * b;
  }
};

/// Reduces the values of all lanes of a warp. `combine` must be commutative.
template <class T, class Combine>
__device__ inline T warp_reduce(T value, Combine combine) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = combine(value, __shfl_xor_sync(kAllLanes, value, distance));
  }
  return value;
}

/// Reduces the values of all threads of a block. The block must be one-dimensional and consist of whole
/// warps. The function may be called several times in succession. If kToFirst is true, only thread 0 gets the
/// result, and the other warps skip the second stage. This saves microseconds for float64 on GPUs whose
/// multiprocessors can only add two float64 numbers per clock.
template <bool kToFirst = false, class T, class Combine>
__device__ inline T block_reduce(T value, Combine combine) {
  __shared__ T parts[kWarp];
  value = warp_reduce(value, combine);
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = value;
  __syncthreads();
  if (!kToFirst || threadIdx.x == 0) {
    value = parts[0];
    for (unsigned warp = 1; warp < blockDim.x / kWarp; ++warp) value = combine(value, parts[warp]);
  }
  __syncthreads();
  return value;
}

}  // namespace dtrain::cuda
