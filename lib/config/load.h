// From files to one tree: YAML with limits, environment, includes and --set.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/diagnostics.h"
#include "config/node.h"

namespace dtrain {

/// Parses one YAML document. Hostile input (size over 8 MiB, nesting over 100 levels, more than a million
/// nodes, aliases that expand beyond that or contain themselves, duplicate keys, keys that are no scalars,
/// several documents, bytes that are no text) becomes an error with a position, in bounded time and memory;
/// then the result is null. Never throws for bad text.
ConfigNode parse_yaml(std::string_view text, const std::string& file_name, Diagnostics& diagnostics);

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

/// A file that a configuration names: as it is if absolute, else beside the file that names it, then under
/// $DTRAIN_DATA. Returns the first that exists, or the first tried.
std::string find_file(std::string_view name, const Mark& named_at);

}  // namespace dtrain
