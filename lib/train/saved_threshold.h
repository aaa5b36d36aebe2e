// The threshold that a checkpoint keeps for an output of two classes.
#pragma once

#include <optional>

#include "train/saved_run.h"

namespace dtrain {

/// The threshold of an output: that of the configuration, or the one of the last epoch that the checkpoint
/// knows. Nothing where there is none. Throws UserError where the checkpoint's was chosen for another goal.
std::optional<double> saved_threshold(const SavedRun& run, size_t head);

}  // namespace dtrain
