// Parses YAML text into a tree.
#pragma once

#include <string>
#include <string_view>

#include "config/diagnostics.h"
#include "config/node.h"

namespace dtrain {

/// Parses one YAML document and applies merge keys (`<<: *other`, `<<: [*one, *other]`). On an error, reports
/// it with its location and returns null. Never throws for invalid text. Limits bound the time and memory for
/// hostile input: the text may have at most 8 MiB, 100 levels of nesting, and a million nodes (aliases are
/// expanded). Other errors are aliases that contain themselves, duplicate keys, keys that are not scalars,
/// several documents, and bytes that are not text.
ConfigNode parse_yaml(std::string_view text, const std::string& file_name, Diagnostics& diagnostics);

/// Like parse_yaml, for text that does not come from a file but from a --set or a variable. All values and
/// errors have the mark `place`.
ConfigNode parse_yaml_at(std::string_view text, const Mark& place, Diagnostics& diagnostics);

}  // namespace dtrain
