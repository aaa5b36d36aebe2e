// The threads that share a row: a warp, or a block where rows are long.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/cuda/reduce.h"
#include "ops/cuda/totals.h"

namespace dtrain::cuda {

struct WarpGroup {
  __device__ int64_t rank() const { return threadIdx.x % kWarp; }
  __device__ int64_t size() const { return kWarp; }
  /// This group of all in the grid, and their number.
  __device__ int64_t index() const {
    return int64_t{blockIdx.x} * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  }
  __device__ int64_t count() const { return int64_t{gridDim.x} * (blockDim.x / kWarp); }
  template <class T, class Combine>
  __device__ T reduce(T value, Combine combine) const {
    return warp_reduce(value, combine);
  }
};

struct BlockGroup {
  __device__ int64_t rank() const { return threadIdx.x; }
  __device__ int64_t size() const { return blockDim.x; }
  __device__ int64_t index() const { return blockIdx.x; }
  __device__ int64_t count() const { return gridDim.x; }
  template <class T, class Combine>
  __device__ T reduce(T value, Combine combine) const {
    return block_reduce(value, combine);
  }
};

/// use(group, blocks, threads): who works on [rows, columns], in so many blocks of so many threads. Little is
/// done by one block, so that its sum needs no second kernel.
template <class Use>
void with_group(int64_t rows, int64_t columns, int64_t most_blocks, Use&& use) {
  constexpr int kThreads = 256;
  if (columns > 1024) return use(BlockGroup{}, static_cast<unsigned>(std::min(rows, most_blocks)), kThreads);
  if (rows <= 256 && rows * columns <= 16384) return use(WarpGroup{}, 1u, kTotalThreads);
  const int64_t blocks = (rows + kThreads / kWarp - 1) / (kThreads / kWarp);
  use(WarpGroup{}, static_cast<unsigned>(std::min(blocks, most_blocks)), kThreads);
}

}  // namespace dtrain::cuda
