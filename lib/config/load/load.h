// Loads files into one tree: YAML with limits, environment variables, includes and --set.
#pragma once

#include <string>
#include <vector>

#include "config/diagnostics.h"
#include "config/node.h"
#include "config/yaml/yaml.h"

namespace dtrain {

/// Reads a run's configuration in these steps:
/// - Reads the file and replaces `${NAME}` and `${NAME:-default}` in strings by values of environment
///   variables.
/// - If the file has the key `base`, whose value is a path, reads the base configuration from this path in
///   the same way, and merges the file over the base (merge.h).
/// - Includes the files that `model`, `dataset` and `strategy` may name. All paths are relative to the file
///   that contains them.
/// - Applies each --set, "a.b.0.c=VALUE" or "a.b[0].c=VALUE" (VALUE is YAML). Missing keys are added, and the
///   schema checks them later.
///
/// It is an error if a --set has an index that is out of range, or a key inside a scalar.
///
/// After some errors, the rest of the result can still be checked: after an error in a --set, the result
/// lacks this assignment; if an included file cannot be read, its key has the value ConfigNode::unreadable()
/// or, in the case of `strategy`, is left out. After any other error, the result is null. If a file is
/// missing, the error is reported at the location of the file's name. If `path` itself is missing, the error
/// has no location.
ConfigNode load_config(const std::string& path, const std::vector<std::string>& sets,
                       Diagnostics& diagnostics);

/// Applies `--set` assignments to a tree that is already in memory. Used on resume, where the tree is the
/// configuration of a checkpoint.
ConfigNode apply_sets(ConfigNode config, const std::vector<std::string>& sets, Diagnostics& diagnostics);

}  // namespace dtrain
