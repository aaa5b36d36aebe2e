// Estimates the time of a training step on a given machine.
#pragma once

#include "distribute/strategy.h"
#include "estimate/machine.h"

namespace dtrain {

/// Returns the estimated seconds of a step of `batch_size` samples with this placement, whose devices are
/// replaced by those of `machine`. See what_fits().
double estimate_step_seconds(const RunConfig& config, const Placement& placement, int64_t batch_size,
                             const Machine& machine);

}  // namespace dtrain
