// Host memory for the CPU backend.
#pragma once

#include <cstddef>

#include "device/device.h"

namespace dtrain::cpu {

/// Allocates zeroed memory that is aligned to 64 bytes. Blocks of at least 2 MiB are aligned to 2 MiB and use
/// huge pages if possible. Throws Error if there is not enough memory.
Buffer allocate(size_t bytes);

}  // namespace dtrain::cpu
