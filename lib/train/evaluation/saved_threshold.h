// The decision threshold of an output with two classes, from a checkpoint.
#pragma once

#include <optional>

#include "train/saved_run.h"

namespace dtrain {

/// Returns the threshold of an output. It is the number in the configuration or, if the configuration has a
/// goal, the threshold that was chosen in the last epoch of the checkpoint's history. Returns nullopt if
/// there is no threshold. Throws UserError if the configuration's goal differs from that of the checkpoint's
/// run.
std::optional<double> saved_threshold(const SavedRun& run, size_t head);

}  // namespace dtrain
