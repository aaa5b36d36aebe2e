// Detects launchers that dtrain does not support. (processes/launch.h has the supported launchers.)
#pragma once

namespace dtrain {

/// Throws UserError if an unsupported launcher started this process as one of several tasks. Without this
/// check, each task would train the whole run.
void reject_several_tasks();

}  // namespace dtrain
