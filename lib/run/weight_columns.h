// Row weights that are computed from the data before a step, for models that need divisors (nn/divisors.h).
#pragma once

#include <vector>

#include "data/loader/sample_weights.h"
#include "run/run_config.h"

namespace dtrain {

/// Reports an error if the model needs divisors, but row weights do not follow from the stored data: a mask
/// is made from values that the model computes, or an augmentation changes the weights.
void check_divisors(const RunConfig& config, Diagnostics& diagnostics);

/// Returns the columns, in the order of with_weights(), from which the row weights of each output are made.
/// For a model that needs divisors.
std::vector<WeightColumns> weight_columns(const RunConfig& config);

}  // namespace dtrain
