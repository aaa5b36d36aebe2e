// Groups of threads that share a row (ops/math/row_group.h): a warp for most rows, a block for long rows, or
// one thread for short rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/cuda/reductions/reduce.h"
#include "ops/cuda/reductions/totals.h"
#include "ops/cuda/vector.h"
#include "ops/math/row_group.h"

namespace dtrain::cuda {

struct ThreadGroup : math::OneThread {
  /// Maximum number of threads per block. Kernels use it as __launch_bounds__(kMostThreads, 1). Without the
  /// second argument, nvcc would spill a few registers to let another block run at the same time.
  static constexpr int kMostThreads = 256;
  /// Return the index of this group in the grid, and the number of groups.
  __device__ int64_t index() const { return thread_index(); }
  __device__ int64_t count() const { return thread_count(); }
  /// Waits for the other threads of the group. After that, their earlier memory accesses are visible to this
  /// thread.
  __device__ void sync() const {}
};

struct WarpGroup {
  static constexpr int kMostThreads = kTotalThreads;
  __device__ int64_t rank() const { return threadIdx.x % kWarp; }
  __device__ int64_t size() const { return kWarp; }
  __device__ int64_t index() const {
    return int64_t{blockIdx.x} * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  }
  __device__ int64_t count() const { return int64_t{gridDim.x} * (blockDim.x / kWarp); }
  __device__ void sync() const { __syncwarp(); }
  template <class T, class Combine>
  __device__ T reduce(T value, Combine combine) const {
    return warp_reduce(value, combine);
  }
};

struct BlockGroup {
  static constexpr int kMostThreads = 256;
  __device__ int64_t rank() const { return threadIdx.x; }
  __device__ int64_t size() const { return blockDim.x; }
  __device__ int64_t index() const { return blockIdx.x; }
  __device__ int64_t count() const { return gridDim.x; }
  __device__ void sync() const { __syncthreads(); }
  template <class T, class Combine>
  __device__ T reduce(T value, Combine combine) const {
    return block_reduce(value, combine);
  }
};

/// Calls use(group, blocks, threads) with the group type and the launch size for [rows, columns]. Small
/// arrays get one block, so that no second kernel is needed for the sum.
template <class Use>
void with_group(int64_t rows, int64_t columns, int64_t most_blocks, Use&& use) {
  constexpr int kThreads = 256;
  if (columns > 1024) return use(BlockGroup{}, static_cast<unsigned>(std::min(rows, most_blocks)), kThreads);
  if (rows <= 256 && rows * columns <= 16384) return use(WarpGroup{}, 1u, kTotalThreads);
  const int64_t blocks = (rows + kThreads / kWarp - 1) / (kThreads / kWarp);
  use(WarpGroup{}, static_cast<unsigned>(std::min(blocks, most_blocks)), kThreads);
}

/// Like with_group(), but if there are fewer than 8 columns, one thread processes a whole row.
template <class Use>
void with_group_or_thread(int64_t rows, int64_t columns, int64_t most_blocks, Use&& use) {
  constexpr int64_t kThreads = 256;
  if (columns >= 8) return with_group(rows, columns, most_blocks, use);
  const int64_t blocks = (rows + kThreads - 1) / kThreads;
  use(ThreadGroup{}, static_cast<unsigned>(std::min(blocks, most_blocks)), static_cast<unsigned>(kThreads));
}

}  // namespace dtrain::cuda
