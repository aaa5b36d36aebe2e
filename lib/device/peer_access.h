// Copies from one GPU's memory to another's.
#pragma once

#include "device/device.h"

namespace dtrain {

/// From now on copies between two GPUs go from one to the other, where the machine has a path between them;
/// else, and before, the driver takes them through the host's memory. Contexts of one GPU are left as they
/// are. Throws Error where a GPU fails.
void enable_peer_access(const Context& one, const Context& other);

}  // namespace dtrain
