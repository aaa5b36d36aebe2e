// From files to one tree: YAML with limits, environment, includes and --set.
#pragma once

#include <string>
#include <vector>

#include "config/diagnostics.h"
#include "config/node.h"
#include "config/yaml.h"

namespace dtrain {

/// Reads a run's configuration: the file, `${NAME}` and `${NAME:-default}` in strings replaced from the
/// environment, the files that `include_keys` (model, dataset, strategy) name put in their place, relative to
/// the file that names them, then each `--set` "a.b.0.c=VALUE" applied (VALUE is YAML; a key or index that
/// does not lead to an existing place is an error, except that the last key may be one that the schema knows:
/// it is checked later like any other). A missing file is an error at the place that names it (or without a
/// place for `path` itself).
ConfigNode load_config(const std::string& path, const std::vector<std::string>& sets,
                       Diagnostics& diagnostics);

/// Applies `--set` assignments to a tree that is already in memory (a checkpoint's configuration, on resume).
ConfigNode apply_sets(ConfigNode config, const std::vector<std::string>& sets, Diagnostics& diagnostics);

}  // namespace dtrain
