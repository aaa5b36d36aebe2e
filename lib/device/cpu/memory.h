// Memory of the CPU.
#pragma once

#include <cstddef>

#include "device/device.h"

namespace dtrain::cpu {

/// Zeroed memory, aligned to 64 bytes, or to 2 MiB and in huge pages where it is at least that large. Throws
/// Error where there is none left.
Buffer allocate(size_t bytes);

}  // namespace dtrain::cpu
