// Reads configuration files and includes the files that they name.
#pragma once

#include <string>
#include <string_view>

#include "config/diagnostics.h"
#include "config/node.h"

namespace dtrain {

/// Reads the file and returns its tree after the expansion of environment variables. On an error, reports it
/// and returns null. If the file cannot be read, the error is reported at `named_at`, the location of the
/// file's name.
ConfigNode read_config_file(const std::string& path, const Mark& named_at, Diagnostics& diagnostics);

/// Returns advice about a path that does not exist: "; did you mean 'digits.yaml'?" if the path's folder has
/// a file or folder with a similar name, else "".
std::string suggestion_beside(const std::string& missing);

/// Returns true for the top-level keys whose value may be a path: model, dataset and strategy. The file at
/// this path contains the key's value.
bool may_be_file(std::string_view key);

/// Returns the path of the file that the configuration calls `name` at the location `named_at`. A relative
/// name is relative to the folder of the configuration file that contains it. If the name does not come from
/// a file (but from a --set), it is relative to the working directory.
std::string beside(std::string_view name, const Mark& named_at);

/// Returns the tree of another file if `value` is a path, that is, a string that contains a slash or ends in
/// .yaml or .yml. The path is relative to the file that contains `value`. Returns `value` itself if it is not
/// a path.
ConfigNode include_file(const ConfigNode& value, Diagnostics& diagnostics);

/// Returns the path of a file that the configuration names. Absolute paths are kept. A relative path is
/// searched in two places: relative to the file that contains it (see beside()), and then in $DTRAIN_DATA.
/// Returns the first path that exists. If none exists, returns the first one.
std::string find_file(std::string_view name, const Mark& named_at);

}  // namespace dtrain
