// Checks that the values of samples are in the ranges that layers and losses require.
#pragma once

#include <string>

#include "run/run_config.h"

namespace dtrain {

/// Reads the columns whose values must be in a range: indices (for embeddings, or as class labels), and
/// targets for a loss that accepts only a range of values. Throws a UserError that names the first sample
/// with a value out of range. `data` may lack the targets. `split`: name of the data in messages, such as
/// "the split 'train'".
void check_samples(const RunConfig& config, const Dataset& data, const std::string& split);

/// Checks the targets, but not the inputs. Does nothing if there are many targets or if they are not in
/// memory, because reading them would take a long time.
void check_targets_at_hand(const RunConfig& config, const Dataset& data, const std::string& split);

/// Returns a sentence about the first value of these samples that is NaN or infinite, such as "sample 17
/// (counted from 0, row 21) of the training data has the value nan in the input 'x'". Returns "" if all
/// values are finite. `split`: name of the data, as for check_samples().
std::string describe_not_finite(const RunConfig& config, const Dataset& data, const Samples& samples,
                                const std::string& split);

/// Does the same for all samples of a split. Skips columns that are larger than `most_bytes`.
std::string describe_not_finite(const RunConfig& config, const Dataset& data, const std::string& split,
                                size_t most_bytes);

/// Reads the samples to find data that cannot be read or that the transforms do not accept. Reads only evenly
/// spaced blocks of a column that is larger than `most_bytes`. Throws the exceptions of the reader.
void check_readable(const Dataset& data, size_t most_bytes);

}  // namespace dtrain
