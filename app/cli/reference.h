// The reference of configurations as a page of Markdown (docs/reference.md).
#pragma once

#include <string>

#include "base/json.h"

namespace dtrain {

/// Every key and kind with its options, defaults and an example, from the JSON schema of a run's
/// configuration (run_config_json_schema).
std::string reference_markdown(const Json& schema);

}  // namespace dtrain
