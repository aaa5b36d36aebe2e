// Host memory for the CPU backend.
#pragma once

#include <cstddef>

#include "device/device.h"

namespace dtrain::cpu {

/// Allocates zeroed memory aligned to 64 bytes; from 2 MiB on, aligned to 2 MiB and backed by huge pages if
/// possible. Throws Error if out of memory.
Buffer allocate(size_t bytes);

}  // namespace dtrain::cpu
