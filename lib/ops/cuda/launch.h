// Kernel launches. tests/emulation has another file of this name, which runs kernels on the CPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>

#include "device/cuda/check.h"

namespace dtrain::cuda {

/// Enqueues kernel(arguments...) over grid x block threads. Throws Error if the launch fails.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
            Arguments&&... arguments) {
  // Passing the arguments by value converts them to the types of the kernel's parameters.
  [&](Parameters... values) {
    void* pointers[] = {static_cast<void*>(&values)..., nullptr};
    check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, pointers, 0, stream),
          "starting a kernel");
  }(static_cast<Parameters>(arguments)...);
}

/// Returns the number of blocks of `threads` threads that n items need. The number is limited to the number
/// of blocks that keep the device busy. If the blocks have fewer than n threads in total, the threads must
/// process several items each.
inline unsigned blocks_for(int64_t n, int threads, int multiprocessors) {
  const int64_t wanted = (n + threads - 1) / threads;
  return static_cast<unsigned>(std::clamp<int64_t>(wanted, 1, int64_t{multiprocessors} * 8));
}

}  // namespace dtrain::cuda
