// A configuration that starts from another.
#pragma once

#include "config/node.h"

namespace dtrain {

/// `base` with the values of `over` in their places: a mapping merges with a mapping, any other value
/// replaces the one that it meets. Values keep their marks, and keys that only `base` has become inherited()
/// ones.
ConfigNode merged(const ConfigNode& base, const ConfigNode& over);

}  // namespace dtrain
