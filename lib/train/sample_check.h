// What samples may hold, where shapes and types do not say it.
#pragma once

#include <string>

#include "run/run_config.h"

namespace dtrain {

/// Reads the columns of indices (an embedding's, labels) and of targets that a loss wants within bounds, and
/// throws UserError where a sample is outside, naming it. `data` may lack the targets. `use`: of the split,
/// "trained on".
void check_samples(const RunConfig& config, const Dataset& data, const std::string& use);

/// Checks the targets alone, and only where looking at them costs next to nothing: few, and in memory.
void check_targets_at_hand(const RunConfig& config, const Dataset& data, const std::string& use);

/// Reads whatever may turn out not to be readable, or not to be what the transforms want; of columns of more
/// than `most_bytes` pieces at equal distances. Throws as reading does.
void check_readable(const Dataset& data, size_t most_bytes);

}  // namespace dtrain
