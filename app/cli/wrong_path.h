// Detects paths meant for another command, with messages that name that command.
#pragma once

#include <string>

namespace dtrain {

/// Throws UserError if the path of a run, a folder of runs or a table is given instead of a configuration.
/// Does not report other errors, because the code that reads the file reports them.
void reject_wrong_configuration(const std::string& path);

/// Throws UserError if the path of a configuration or a folder of runs is given instead of a run. `command`
/// is the command that needs a run: "evaluate".
void reject_wrong_run(const std::string& path, const std::string& command);

/// Throws UserError if `path` is a file that a run wrote in its directory, such as metrics.csv. Must be
/// called for files that a command is about to write.
void reject_file_of_run(const std::string& path);

}  // namespace dtrain
