// Memory of a GPU, and host memory that it copies from and to by itself.
#pragma once

#include <cstddef>
#include <cuda_runtime.h>

#include "device/device.h"

namespace dtrain::cuda {

/// Memory of the current GPU, zeroed when this returns. Throws Error that says what was asked for and what
/// there is.
Buffer allocate_device(size_t bytes, cudaStream_t stream);
/// Pinned host memory, zeroed; pageable memory if the system does not pin so much (`ulimit -l`, WSL2,
/// containers).
Buffer allocate_pinned(size_t bytes);

}  // namespace dtrain::cuda
