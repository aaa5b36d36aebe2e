// Merges a configuration with its base.
#pragma once

#include "config/node.h"

namespace dtrain {

/// Returns `base` with the values of `over`. If both values of a key are mappings, they are merged. Otherwise
/// the value of `over` replaces the value of `base`. Values keep their marks. Keys that exist only in `base`
/// are marked as inherited().
ConfigNode merged(const ConfigNode& base, const ConfigNode& over);

}  // namespace dtrain
