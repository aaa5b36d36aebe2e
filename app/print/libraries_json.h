#pragma once

#include "base/json.h"

namespace dtrain {

/// The libraries of NVIDIA's that this process has opened so far: [{name, version, path}].
Json libraries_json();

}  // namespace dtrain
