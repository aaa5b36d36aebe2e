// parse_yaml with the places of its values given, for text that stands in no file.
#pragma once

#include <optional>
#include <string_view>

#include "config/diagnostics.h"
#include "config/node.h"

namespace dtrain {

/// As parse_yaml; every value and mistake has the mark `place` where that is in no line (a --set), else its
/// own in that file.
ConfigNode parse_yaml_at(std::string_view text, const Mark& place, Diagnostics& diagnostics);

}  // namespace dtrain
