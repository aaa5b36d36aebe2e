// Sums over all threads of a grid, with bitwise the same result in every run: each block writes its sum, and
// a second kernel of one block adds these sums in a fixed order.
#pragma once

#include "ops/cuda/launch.h"
#include "ops/cuda/reductions/reduce.h"

namespace dtrain::cuda {

/// Destination of a grid's sum, in device memory.
struct Total {
  double* total;
  double* partials;    // the sums of the blocks, if the grid has several blocks
  double divisor = 1;  // the sum is divided by this number

  __device__ void put(double sum) const { *total += sum / divisor; }
};

/// Adds the values of all threads. If the grid has one block, adds the sum to the total; otherwise, stores
/// the sum of the block for finish(). `value` is this thread's part of the sum. All threads must call this
/// function, as the last action of the kernel.
__device__ inline void leave(const Total& total, double value) {
  value = block_reduce<true>(value, Add{});
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1) {
    total.put(value);
  } else {
    total.partials[blockIdx.x] = value;
  }
}

inline constexpr int kTotalThreads = 1024;

template <int kThreads>
__global__ void __launch_bounds__(kThreads) add_partials_kernel(Total total, int parts) {
  double value = 0;
  for (int i = static_cast<int>(threadIdx.x); i < parts; i += kThreads) value += total.partials[i];
  value = block_reduce<true>(value, Add{});
  if (threadIdx.x == 0) total.put(value);
}

/// Must be called after a kernel of `blocks` blocks that calls leave(). Enqueues the kernel that adds the
/// sums of the blocks. If there is only one block, does nothing, because this block has already added its sum
/// to the total.
inline void finish(const Total& total, unsigned blocks, cudaStream_t stream) {
  if (blocks == 1) return;
  launch(add_partials_kernel<kTotalThreads>, 1, kTotalThreads, stream, total, static_cast<int>(blocks));
}

}  // namespace dtrain::cuda
