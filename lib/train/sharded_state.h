// State that is cut among the replicas (ZeRO's three levels; Rajbhandari et al., "ZeRO: Memory Optimizations
// Toward Training Trillion Parameter Models", 2020).
#pragma once

#include <memory>

#include "train/gradient_sync.h"

namespace dtrain {

/// Each replica keeps the optimizer's slots of a part of the parameters only; from level `gradients` on the
/// sum of that part's gradients only; with level `parameters` that part of the parameters only. The parts are
/// contiguous in the layout, and differ by at most 16 floats. Replicas on the CPU meet in the host's memory;
/// a GPU each by NCCL. Throws UserError for any other mixture of devices.
std::unique_ptr<GradientSync> make_sharded_state(const GradientSyncRequest& request);

}  // namespace dtrain
