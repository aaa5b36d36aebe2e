// Chooses the run directory if the command line gives no directory: runs/NAME, runs/NAME-2, ...
#pragma once

#include <optional>
#include <string>

#include "run/record/run_directory.h"

namespace dtrain {

/// Returns the first of the directories runs/NAME, runs/NAME-2, ... that has no checkpoints and in which no
/// other process is training. Locks the directory. Throws UserError as RunDirectory::hold() does.
RunDirectory take_free_directory(const std::string& name);

/// Returns the directory in which a run with this name was last trained: runs/NAME, or a numbered directory
/// (runs/NAME-2, ...) whose config.yaml contains this name. Returns nullopt if there is none.
std::optional<RunDirectory> newest_directory(const std::string& name);

}  // namespace dtrain
