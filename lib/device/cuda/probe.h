#pragma once

#include <cuda_runtime.h>

namespace dtrain::cuda {

/// Loads a kernel of this program on the current GPU, which makes its context. Returns what CUDA says of
/// that: cudaErrorNoKernelImageForDevice, for instance, where the program has none for this GPU.
cudaError_t load_probe_kernel();

}  // namespace dtrain::cuda
