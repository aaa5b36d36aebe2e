// Merging a configuration over its base.
#pragma once

#include "config/node.h"

namespace dtrain {

/// Returns `base` with the values of `over`: a mapping merges with a mapping, and any other value replaces
/// the base's. Values keep their marks. Keys that exist only in `base` become inherited().
ConfigNode merged(const ConfigNode& base, const ConfigNode& over);

}  // namespace dtrain
