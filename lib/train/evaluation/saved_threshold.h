// The decision threshold of an output with two classes, from a checkpoint.
#pragma once

#include <optional>

#include "train/saved_run.h"

namespace dtrain {

/// Returns the threshold of an output: from the configuration, or as chosen in the last epoch of the
/// checkpoint's history. Returns nullopt if there is none. Throws UserError if the configuration has a goal
/// that is not the goal of the checkpoint's run.
std::optional<double> saved_threshold(const SavedRun& run, size_t head);

}  // namespace dtrain
