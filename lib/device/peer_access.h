// Copies from one GPU's memory to another's.
#pragma once

#include <string>
#include <vector>

#include "device/device.h"

namespace dtrain {

/// From now on copies between two GPUs go from one to the other (peer access), if the machine has a path
/// between them, the driver takes it, what is copied over it arrives as it was sent, and the environment does
/// not say DTRAIN_P2P=0. Else, and before, the driver takes them through the host's memory. Contexts of one
/// GPU are left as they are. Each pair of GPUs is tried once in the process, with a copy of 1 MiB each way,
/// which allocates and waits. Throws Error if a GPU fails, or if copies arrive damaged by way of the host,
/// too.
void connect_gpus(const Context& one, const Context& other);

/// Whether the environment does not say DTRAIN_P2P=0.
bool peer_access_is_wanted();

/// What people should know of the pairs that have been connected: peer access that fails, or damages copies.
std::vector<std::string> peer_access_notes();

}  // namespace dtrain
