// Environment variables in configuration strings.
#pragma once

#include "config/diagnostics.h"
#include "config/node.h"

namespace dtrain {

/// Returns the tree with `${NAME}` and `${NAME:-default}` replaced in every scalar except keys, and `$$`
/// replaced by a dollar; `$name` is kept. The new text of a scalar with a variable, quoted or not, becomes a
/// plain scalar, or is parsed as YAML if it is a bracketed list or mapping or a quoted string. Reports an
/// unset variable without a default at its scalar.
ConfigNode expand_environment(const ConfigNode& node, Diagnostics& diagnostics);

/// Returns the tree that expand_environment() turns into this one.
ConfigNode escape_environment(const ConfigNode& node);

}  // namespace dtrain
