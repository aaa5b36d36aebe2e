// Sums over a whole grid with the same bits in every run: each block writes its sum, and a further one-block
// kernel adds these sums in a fixed order.
#pragma once

#include "ops/cuda/launch.h"
#include "ops/cuda/reductions/reduce.h"

namespace dtrain::cuda {

/// Destination of a grid's sum, in device memory.
struct Total {
  double* total;
  double* partials;    // the sums of the blocks, if there are several
  double divisor = 1;  // the sum is divided by this number

  __device__ void put(double sum) const { *total += sum / divisor; }
};

/// Adds the threads' values to the total, or stores the block's sum for finish(). `value` is this thread's
/// part of the sum. All threads must call it, and a kernel must call it last.
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

/// Enqueues the final addition after a kernel of `blocks` blocks that calls `leave`. Does nothing after a
/// single block, which has already written the total.
inline void finish(const Total& total, unsigned blocks, cudaStream_t stream) {
  if (blocks == 1) return;
  launch(add_partials_kernel<kTotalThreads>, 1, kTotalThreads, stream, total, static_cast<int>(blocks));
}

}  // namespace dtrain::cuda
