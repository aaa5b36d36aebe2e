// Detects evaluation samples that a previous run was trained on.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "run/run_config.h"

namespace dtrain {

/// Returns a warning for each validation or test split of the configured run that contains training samples
/// of the run that wrote the checkpoint `other`, because scores on these samples say little about unseen
/// samples. Opens these splits, and the splits of the other run if both runs read the same files but draw
/// different samples. Ignores splits that cannot be opened. Returns no warnings if the files of the other run
/// had different content.
std::vector<std::string> warnings_of_overlap(const RunConfig& config, const Checkpoint& other);

}  // namespace dtrain
