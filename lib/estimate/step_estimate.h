// How long a step takes on some machine, by arithmetic.
#pragma once

#include "distribute/strategy.h"
#include "estimate/machine.h"

namespace dtrain {

/// Seconds of a step of `batch_size` samples, laid out as the placement says (its devices stand for as many
/// of the machine's). See what_fits().
double estimate_step_seconds(const RunConfig& config, const Placement& placement, int64_t batch_size,
                             const Machine& machine);

}  // namespace dtrain
