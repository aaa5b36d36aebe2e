// Detects launchers whose tasks dtrain does not connect (processes/launch.h has the supported launchers).
#pragma once

namespace dtrain {

/// Throws UserError if such a launcher started this process as one of several tasks: each would train the
/// whole run.
void reject_several_tasks();

}  // namespace dtrain
