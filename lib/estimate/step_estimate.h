// Estimates the time of a training step on a given machine.
#pragma once

#include "estimate/machine.h"
#include "run/run_plan.h"

namespace dtrain {

/// Returns the estimated time of a step of `batch_size` samples, in seconds. The step runs the plan on the
/// devices of `machine` instead of the plan's devices. The comment of what_fits() describes how times are
/// estimated.
double estimate_step_seconds(const RunPlan& plan, int64_t batch_size, const Machine& machine);

}  // namespace dtrain
