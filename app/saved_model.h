// The model that evaluate and predict use.
#pragma once

#include <string>
#include <vector>

#include "train/saved_run.h"

namespace dtrain {

/// Loads a run's newest checkpoint, or its best; says so where the newest is taken and another is the best.
/// Throws UserError as load_saved_run() does.
SavedRun load_saved_model(const std::string& path, const std::vector<std::string>& sets, bool best);

}  // namespace dtrain
