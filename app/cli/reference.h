// Generates the configuration reference as Markdown (docs/reference.md).
#pragma once

#include <string>

#include "base/json.h"

namespace dtrain {

/// Returns a page that describes every key and type with its options, defaults and an example. `schema` is
/// the JSON schema of a run's configuration (run_config_json_schema).
std::string reference_markdown(const Json& schema);

}  // namespace dtrain
