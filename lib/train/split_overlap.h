// Samples that a run evaluates and that the run before it was trained on.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "run/run_config.h"

namespace dtrain {

/// A sentence for each of the configured run's validation and test splits that has samples on which the run
/// of the checkpoint `other` was trained: scores there say little of unseen samples. Opens these splits, and
/// those of the other run where both read the same files and draw otherwise. Nothing is said of splits that
/// cannot be opened, nor where the other run's files have another content.
std::vector<std::string> warnings_of_overlap(const RunConfig& config, const Checkpoint& other);

}  // namespace dtrain
