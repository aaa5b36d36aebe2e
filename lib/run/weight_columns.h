// Finds the columns whose row weights are added up before each step. Some models divide their losses and
// gradients by these sums (nn/divisors.h).
#pragma once

#include <vector>

#include "data/loader/sample_weights.h"
#include "run/run_config.h"

namespace dtrain {

/// Reports an error if the model needs divisors, but the row weights cannot be computed from the stored data.
/// This is the case if a mask is made from values that the model computes, or if an augmentation changes
/// masks or weights.
void check_divisors(const RunConfig& config, Diagnostics& diagnostics);

/// Returns, for each output, the columns from which its row weights are computed, as indices of the columns
/// that with_weights() returns. To be called only if the model needs divisors.
std::vector<WeightColumns> weight_columns(const RunConfig& config);

}  // namespace dtrain
