// Loads files into one tree: YAML with limits, environment variables, includes and --set.
#pragma once

#include <string>
#include <vector>

#include "config/diagnostics.h"
#include "config/node.h"
#include "config/yaml/yaml.h"

namespace dtrain {

/// Reads a run's configuration. First reads the file and replaces `${NAME}` and `${NAME:-default}` in strings
/// from the environment. Then merges it over the configuration that `base` names (merge.h), recursively, and
/// includes the files that `model`, `dataset` and `strategy` may name; all paths are relative to the file
/// that contains them. Finally applies each `--set` "a.b.0.c=VALUE" or "a.b[0].c=VALUE" (VALUE is YAML).
/// Missing keys are added; the schema checks them later. Reports an index out of range, a key below a scalar,
/// and a missing key, other than the last one, that looks like a misspelling of an existing key. Reports a
/// missing file at the place that names it, or without a location if it is `path` itself.
ConfigNode load_config(const std::string& path, const std::vector<std::string>& sets,
                       Diagnostics& diagnostics);

/// Applies `--set` assignments to a tree in memory (a checkpoint's configuration, on resume).
ConfigNode apply_sets(ConfigNode config, const std::vector<std::string>& sets, Diagnostics& diagnostics);

}  // namespace dtrain
