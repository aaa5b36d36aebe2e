// From files to one tree: YAML with limits, environment, includes and --set.
#pragma once

#include <string>
#include <vector>

#include "config/diagnostics.h"
#include "config/node.h"
#include "config/yaml.h"

namespace dtrain {

/// Reads a run's configuration: the file, with `${NAME}` and `${NAME:-default}` in strings replaced from the
/// environment; the configuration that `base` names below it (merge.h), and so on; the files that `model`,
/// `dataset` and `strategy` may name put in their place, all relative to the file that names them; then each
/// `--set` "a.b.0.c=VALUE" or "a.b[0].c=VALUE" (VALUE is YAML). Keys that are missing are added, and checked
/// by the schema later. Errors are an index outside of its list, a key below a scalar, and a key before the
/// last that looks like one that is there, misspelt. A missing file is reported where it is named (`path`
/// itself: without a place).
ConfigNode load_config(const std::string& path, const std::vector<std::string>& sets,
                       Diagnostics& diagnostics);

/// Applies `--set` assignments to a tree that is already in memory (a checkpoint's configuration, on resume).
ConfigNode apply_sets(ConfigNode config, const std::vector<std::string>& sets, Diagnostics& diagnostics);

}  // namespace dtrain
