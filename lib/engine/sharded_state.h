// State sharded among the replicas (the three levels of ZeRO; Rajbhandari et al., "ZeRO: Memory Optimizations
// Toward Training Trillion Parameter Models", 2020).
#pragma once

#include <memory>

#include "engine/gradient_sync.h"

namespace dtrain {

/// Each replica keeps only one part of the optimizer state, from level `gradients` on also only that part of
/// the summed gradients, and with level `parameters` also only that part of the parameters. A part is a
/// contiguous range of the parameters with gradients and, with level `parameters`, one of the frozen
/// parameters. Sizes differ by at most 16 floats in each. CPU replicas exchange parts in host memory; GPUs,
/// one per replica, by NCCL. Throws UserError if there are GPUs but no NCCL.
std::unique_ptr<GradientSync> make_sharded_state(const GradientSyncRequest& request);

/// Returns how many additional floats each GPU needs as staging for other replicas' parameters or sums of
/// gradients: a layer and a bucket of gradients, or all statistics. 0 for level `optimizer`, which gathers
/// and reduces in place.
int64_t passing_floats(const ParameterLayout& layout, ShardLevel level);

}  // namespace dtrain
