// Environment variables in configuration strings.
#pragma once

#include "config/diagnostics.h"
#include "config/node.h"

namespace dtrain {

/// Returns the tree with `${NAME}` and `${NAME:-default}` replaced by values of environment variables, and
/// `$$` replaced by a dollar sign. `$name` is kept. Keys are not changed. A scalar that contains a variable,
/// quoted or not, is replaced by a plain scalar with the new text. However, if the new text is a quoted
/// string, or a list or mapping in brackets, it is parsed as YAML. If a variable is not set and has no
/// default, reports an error at the scalar.
ConfigNode expand_environment(const ConfigNode& node, Diagnostics& diagnostics);

/// The inverse of expand_environment(): returns a tree that expand_environment() converts to `node`.
ConfigNode escape_environment(const ConfigNode& node);

}  // namespace dtrain
