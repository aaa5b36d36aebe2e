// Sums over a whole grid, the same bits run after run: every block leaves its own, and one more block adds
// them in an order that is always the same.
#pragma once

#include "ops/cuda/launch.h"
#include "ops/cuda/reduce.h"

namespace dtrain::cuda {

/// Where a grid's sum goes, device memory.
struct Total {
  double* total;
  double* partials;    // room for one of each block
  double divisor = 1;  // the sum is divided by it

  __device__ void put(double sum) const { *total += sum / divisor; }
};

/// A kernel's last call, of all threads: `value` is what this thread has to add.
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

/// To be enqueued after a kernel of so many blocks that calls `leave`. A single block has done it all.
inline void finish(const Total& total, unsigned blocks, cudaStream_t stream) {
  if (blocks == 1) return;
  launch(add_partials_kernel<kTotalThreads>, 1, kTotalThreads, stream, total, static_cast<int>(blocks));
}

}  // namespace dtrain::cuda
