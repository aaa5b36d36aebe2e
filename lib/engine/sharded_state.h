// State that is cut among the replicas (ZeRO's three levels; Rajbhandari et al., "ZeRO: Memory Optimizations
// Toward Training Trillion Parameter Models", 2020).
#pragma once

#include <memory>

#include "engine/gradient_sync.h"

namespace dtrain {

/// Each replica keeps the optimizer's slots of a part of the parameters only; from level `gradients` on the
/// sum of that part's gradients only; with level `parameters` that part of the parameters only. A part is a
/// contiguous range of what has gradients, and with level `parameters` one of what is frozen; parts differ by
/// at most 16 floats in each. Replicas on the CPU exchange parts in the host's memory; GPUs, one a replica,
/// by NCCL. Throws UserError for a mixture of both, and for GPUs where there is no NCCL.
std::unique_ptr<GradientSync> make_sharded_state(const GradientSyncRequest& request);

/// How many floats each GPU has besides, where others' parameters, or sums of gradients, come to pass
/// through: a layer and a bucket of gradients, or all statistics. 0 where whole ones are gathered and reduced
/// as they lie.
int64_t passing_floats(const ParameterLayout& layout, ShardLevel level);

}  // namespace dtrain
