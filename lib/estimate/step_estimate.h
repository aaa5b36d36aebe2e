// Estimates the time of a training step on a given machine.
#pragma once

#include "estimate/machine.h"
#include "run/run_plan.h"

namespace dtrain {

/// Returns the estimated seconds of a step of `batch_size` samples by the plan, whose devices are replaced by
/// those of `machine`. See what_fits().
double estimate_step_seconds(const RunPlan& plan, int64_t batch_size, const Machine& machine);

}  // namespace dtrain
