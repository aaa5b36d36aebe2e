// GPU memory, and pinned host memory.
#pragma once

#include <cstddef>
#include <cuda_runtime.h>

#include "device/device.h"

namespace dtrain::cuda {

/// Allocates zeroed memory on the current GPU; waits for the zeroing. If out of memory, throws Error with the
/// requested and the free size.
Buffer allocate_device(size_t bytes, cudaStream_t stream);
/// Allocates zeroed pinned host memory. Falls back to pageable memory if the system does not allow pinning
/// this much (`ulimit -l`, WSL2, containers).
Buffer allocate_pinned(size_t bytes);

}  // namespace dtrain::cuda
