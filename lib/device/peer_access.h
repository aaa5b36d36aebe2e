// Direct copies between GPUs (peer access).
#pragma once

#include <string>
#include <vector>

#include "device/device.h"

namespace dtrain {

/// Enables direct copies (peer access) between two GPUs if the machine has a path between them, the driver
/// allows it, a test copy arrives undamaged, and the environment does not have DTRAIN_P2P=0. Otherwise, and
/// before this call, the driver copies through host memory. Does nothing for two contexts of one GPU. Each
/// pair of GPUs is tested once per process, with a copy of 1 MiB in each direction, which allocates and
/// waits. Throws Error if a GPU fails, or if copies through the host arrive damaged as well.
void connect_gpus(const Context& one, const Context& other);

/// Returns false if the environment has DTRAIN_P2P=0.
bool peer_access_is_wanted();

/// Returns notes for the user about connected pairs: peer access that failed or damaged copies.
std::vector<std::string> peer_access_notes();

}  // namespace dtrain
