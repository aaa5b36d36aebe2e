// What samples may hold, where shapes and types do not say it.
#pragma once

#include <string>

#include "train/run_config.h"

namespace dtrain {

/// Reads the columns of indices (an embedding's, labels) and, where `all`, of targets that a loss wants
/// within bounds, too, and throws UserError where a sample is outside, naming it. `data` may lack the
/// targets. `use`: of the split, "trained on".
void check_samples(const RunConfig& config, const Dataset& data, const std::string& use, bool all);

}  // namespace dtrain
