// Values and their types as the reference of configurations writes them.
#pragma once

#include <string>

#include "base/json.h"

namespace dtrain {

/// A value as YAML in one line.
std::string yaml_text(const Json& value);
/// What a JSON schema allows, in words: "integer ≥ 1", "list of strings",
/// "[activation](#activations)".
std::string value_type(const Json& schema);
/// Text as it may stand in a cell of a table.
std::string in_table(const std::string& text);
/// The braces of a text set as code: "short for {rate: ...}".
std::string in_code(const std::string& text);

}  // namespace dtrain
