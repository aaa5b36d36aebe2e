// Reads configuration files and includes the files that they name.
#pragma once

#include <string>
#include <string_view>

#include "config/diagnostics.h"
#include "config/node.h"

namespace dtrain {

/// Returns the tree in this file after environment expansion. On an error, reports it (at `named_at` if the
/// file cannot be read) and returns null.
ConfigNode read_config_file(const std::string& path, const Mark& named_at, Diagnostics& diagnostics);

/// Returns true if a top-level key's value may be a path to a file with that value: model, dataset, strategy.
bool may_be_file(std::string_view key);

/// Resolves a file name relative to the folder of the configuration file that contains it, or to the working
/// directory if no file does (a --set).
std::string beside(std::string_view name, const Mark& named_at);

/// Returns the tree of the file whose path is `value`, relative to the file that contains `value`. Returns
/// `value` itself unless it is a path: a string that contains a slash or ends in .yaml or .yml.
ConfigNode include_file(const ConfigNode& value, Diagnostics& diagnostics);

/// Resolves a file name in a configuration: absolute paths are kept; else the name is searched relative to
/// the file that contains it (see beside()), then under $DTRAIN_DATA. Returns the first path that exists, or
/// the first one tried.
std::string find_file(std::string_view name, const Mark& named_at);

}  // namespace dtrain
