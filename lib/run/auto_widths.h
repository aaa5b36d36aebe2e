// Shapes and units that the data say: `auto` in the model part of a configuration.
#pragma once

#include "config/diagnostics.h"
#include "run/run_config.h"

namespace dtrain {

/// `config` with a number in the place of every `auto` that `ends` names: the shape of one sample of the
/// training split, and for the units of an output the number of classes or the width of its target, by its
/// loss. `draft` is the run as far as it is known without them. Opens the training split; what is wrong is
/// reported at the `auto`.
ConfigNode with_widths(const ConfigNode& config, const RunConfig& draft, const ModelEnds& ends,
                       Diagnostics& diagnostics);

}  // namespace dtrain
