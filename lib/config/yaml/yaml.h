// Parses YAML text into a tree.
#pragma once

#include <string>
#include <string_view>

#include "config/diagnostics.h"
#include "config/node.h"

namespace dtrain {

/// Parses one YAML document and applies merge keys (`<<: *other`, `<<: [*one, *other]`). Hostile input is
/// reported as an error with a position, in bounded time and memory, and the result is null: more than 8 MiB,
/// nesting over 100 levels, more than a million nodes (aliases expanded), aliases that contain themselves,
/// duplicate keys, keys that are not scalars, several documents, or bytes that are not text. Never throws for
/// invalid text.
ConfigNode parse_yaml(std::string_view text, const std::string& file_name, Diagnostics& diagnostics);

/// Like parse_yaml, for text that is not in a file (a --set, a variable): all values and errors have the mark
/// `place`.
ConfigNode parse_yaml_at(std::string_view text, const Mark& place, Diagnostics& diagnostics);

}  // namespace dtrain
