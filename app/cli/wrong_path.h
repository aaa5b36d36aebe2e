// Paths of another kind than a command takes: messages that name the command that takes them.
#pragma once

#include <string>

namespace dtrain {

/// Throws UserError for the path of a run, of a folder of runs, or of a table in the place of a
/// configuration. Other paths are for whoever reads them.
void refuse_wrong_configuration(const std::string& path);

/// Throws UserError for the path of a configuration, or of a folder of runs, in the place of a run. `command`
/// is the one that takes a run: "evaluate".
void refuse_wrong_run(const std::string& path, const std::string& command);

}  // namespace dtrain
