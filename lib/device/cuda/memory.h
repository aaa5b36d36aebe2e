// GPU memory, and pinned host memory.
#pragma once

#include <cstddef>
#include <cuda_runtime.h>

#include "device/device.h"

namespace dtrain::cuda {

/// Allocates memory on the current GPU, sets it to zero, and waits until this is done. If there is not enough
/// memory, throws Error with the requested size and the free size.
Buffer allocate_device(size_t bytes, cudaStream_t stream);
/// Allocates zeroed pinned host memory. Falls back to pageable memory if the system does not allow this
/// process to pin this amount of memory (`ulimit -l`, WSL2, containers).
Buffer allocate_pinned(size_t bytes);

}  // namespace dtrain::cuda
