// The environment's variables in a configuration's strings.
#pragma once

#include "config/diagnostics.h"
#include "config/node.h"

namespace dtrain {

/// The tree with `${NAME}` and `${NAME:-default}` replaced in every scalar but keys, and `$$` by a dollar;
/// `$name` stays. A scalar with a variable, quoted or not, then means what its new text means as YAML, lists
/// and mappings in brackets included. A variable that is not set and has no default is reported at its
/// scalar.
ConfigNode expand_environment(const ConfigNode& node, Diagnostics& diagnostics);

/// The tree of which expand_environment() makes this one.
ConfigNode escape_environment(const ConfigNode& node);

}  // namespace dtrain
