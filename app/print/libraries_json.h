#pragma once

#include "base/json.h"

namespace dtrain {

/// Returns the NVIDIA libraries that this process has loaded so far: [{name, version, path}].
Json libraries_json();

}  // namespace dtrain
