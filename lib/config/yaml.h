// YAML text to a tree.
#pragma once

#include <string>
#include <string_view>

#include "config/diagnostics.h"
#include "config/node.h"

namespace dtrain {

/// Parses one YAML document, merge keys (`<<: *other`, `<<: [*one, *other]`) applied. Hostile input (size
/// over 8 MiB, nesting over 100 levels, more than a million nodes, aliases that expand beyond that or contain
/// themselves, duplicate keys, keys that are no scalars, several documents, bytes that are no text) becomes
/// an error with a position, in bounded time and memory; then the result is null. Never throws for bad text.
ConfigNode parse_yaml(std::string_view text, const std::string& file_name, Diagnostics& diagnostics);

/// As parse_yaml, for text that is no file (a --set, a variable): every value and mistake has the mark
/// `place`.
ConfigNode parse_yaml_at(std::string_view text, const Mark& place, Diagnostics& diagnostics);

}  // namespace dtrain
