// Kernels whose threads share rows. A warp processes a row, and a block several rows. If the rows are long, a
// whole block processes one row. Each element of a row is read and written by the same thread only, so a
// destination may be the same array as a source.
#pragma once

#include <cstdint>

#include "device/cuda/context.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/reductions/reduce.h"

namespace dtrain::cuda {

inline constexpr int kRowThreads = 256;

/// Reduces the values of all threads that share a row. Every thread gets the result.
template <class Combine>
__device__ inline float row_reduce(float value, Combine combine) {
  return blockDim.x == kWarp ? warp_reduce(value, combine) : block_reduce(value, combine);
}

/// Calls use(r) for each row r that this thread processes.
template <class Use>
__device__ inline void each_row(int64_t rows, Use&& use) {
  const int64_t step = int64_t{gridDim.x} * blockDim.y;
  for (int64_t r = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; r < rows; r += step) use(r);
}

/// Calls use(c) for each group of N columns that this thread processes; c is the first column of the group.
template <int N, class Use>
__device__ inline void each_column(int64_t columns, Use&& use) {
  const int64_t step = int64_t{blockDim.x} * N;
  for (int64_t c = int64_t{threadIdx.x} * N; c < columns; c += step) use(c);
}

/// Enqueues kernel(arguments..., rows, columns). A warp processes a row or, if long_rows is true, a block
/// processes a row.
template <class Kernel, class... Arguments>
void launch_rows(const CudaContext& context, Kernel kernel, bool long_rows, int64_t rows, int64_t columns,
                 Arguments... arguments) {
  if (rows <= 0 || columns <= 0) return;
  const int rows_of_block = long_rows ? 1 : kRowThreads / kWarp;
  const dim3 block(static_cast<unsigned>(kRowThreads / rows_of_block), static_cast<unsigned>(rows_of_block));
  launch(kernel, blocks_for(rows, rows_of_block, context.multiprocessors()), block, context.compute(),
         arguments..., rows, columns);
}

}  // namespace dtrain::cuda
