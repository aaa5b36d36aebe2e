// Checks sample values that shapes and types do not constrain.
#pragma once

#include <string>

#include "run/run_config.h"

namespace dtrain {

/// Reads the columns with bounded values: indices (for embeddings, or as labels) and targets that a loss
/// requires to be in a range. Throws UserError that names the first sample out of bounds. `data` may lack the
/// targets. `split`: name of the data in messages, such as "the split 'train'".
void check_samples(const RunConfig& config, const Dataset& data, const std::string& split);

/// Checks the targets, but not the inputs. Does nothing unless they are few and in memory.
void check_targets_at_hand(const RunConfig& config, const Dataset& data, const std::string& split);

/// Reads all data that might be unreadable or invalid for the transforms. Of columns larger than
/// `most_bytes`, reads evenly spaced blocks. Throws the exceptions of the reader.
void check_readable(const Dataset& data, size_t most_bytes);

}  // namespace dtrain
