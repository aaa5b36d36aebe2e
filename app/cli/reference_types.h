// Formats values and their types for the configuration reference.
#pragma once

#include <string>

#include "base/json.h"

namespace dtrain {

/// Returns a value as YAML on one line.
std::string yaml_text(const Json& value);
/// Describes what a JSON schema allows: "integer ≥ 1", "list of strings", "[activation](#activations)".
std::string value_type(const Json& schema);
/// Escapes text for a cell of a Markdown table.
std::string in_table(const std::string& text);
/// Formats the braced part of a text as code: "short for `{rate: ...}`".
std::string in_code(const std::string& text);

}  // namespace dtrain
