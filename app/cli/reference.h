// Generates the configuration reference as Markdown (docs/reference.md).
#pragma once

#include <string>

#include "base/json.h"

namespace dtrain {

/// Returns a page with every key and type, their options, defaults and an example, from the JSON schema of a
/// run's configuration (run_config_json_schema).
std::string reference_markdown(const Json& schema);

}  // namespace dtrain
