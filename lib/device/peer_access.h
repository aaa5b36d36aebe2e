// Direct copies between GPUs (peer access).
#pragma once

#include <string>
#include <vector>

#include "device/device.h"

namespace dtrain {

/// Enables direct copies (peer access) between two GPUs. Four conditions must be met: the machine has a path
/// between the GPUs, the driver allows the access, a test copy arrives correctly, and the environment does
/// not have DTRAIN_P2P=0. Otherwise, and before this call, the driver copies through host memory. Does
/// nothing if both contexts use the same GPU. Each pair of GPUs is tested once per process, with copies of 1
/// MiB in each direction. The test allocates memory and waits for the GPUs. Throws Error if a GPU fails, or
/// if copies through host memory do not arrive correctly, either. If a copy does not arrive at all, the
/// function ends the process (base/exit_deadline.h), because the memory of this copy can never be freed.
void connect_gpus(const Context& one, const Context& other);

/// Returns false if the environment has DTRAIN_P2P=0.
bool peer_access_is_wanted();

/// Returns notes for the user about problems between connected GPUs: peer access failed, or copies did not
/// arrive correctly.
std::vector<std::string> peer_access_notes();

}  // namespace dtrain
