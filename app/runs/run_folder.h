// The directory of a run whose command names none: runs/NAME, runs/NAME-2, ...
#pragma once

#include <string>

#include "run/record/run_directory.h"

namespace dtrain {

/// The first of runs/NAME, runs/NAME-2, ... that holds no checkpoints and that no other process trains in.
/// The directory is held. Throws UserError as RunDirectory::hold() does.
RunDirectory take_free_directory(const std::string& name);

/// The directory that the run of this name last trained in: runs/NAME, or a numbered one whose config.yaml
/// has the same name. runs/NAME where none of them is a run.
RunDirectory newest_directory(const std::string& name);

}  // namespace dtrain
