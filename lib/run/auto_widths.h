// Resolves `auto` shapes and units in the model part of a configuration from the data.
#pragma once

#include "config/diagnostics.h"
#include "run/run_config.h"

namespace dtrain {

/// Returns `config` with every `auto` in `ends` replaced by numbers. The shape of an input is the shape of
/// one training sample. The units of an output are the number of classes or the width of its target,
/// depending on its loss. `draft`: the run as parsed without these numbers. Opens the training split. Throws
/// UserError as training_forms() does; reports other errors at the `auto`.
ConfigNode with_widths(const ConfigNode& config, const RunConfig& draft, const ModelEnds& ends,
                       Diagnostics& diagnostics);

}  // namespace dtrain
