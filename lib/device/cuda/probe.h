#pragma once

#include <cuda_runtime.h>

namespace dtrain::cuda {

/// Loads a kernel of this program on the current GPU, which creates the GPU's context. Returns CUDA's status,
/// for example cudaErrorNoKernelImageForDevice if the program was not compiled for this GPU.
cudaError_t load_probe_kernel();

}  // namespace dtrain::cuda
