// Which loss and metrics each of the model's outputs has.
#pragma once

#include "train/run_config.h"

namespace dtrain {

/// Reads `loss:` for the outputs of config.graph, sets config.heads and total_names from it and
/// config.train.metrics, and returns the losses as written in full. Mistakes are reported.
Node parse_heads(RunConfig& config, const Node& train, Diagnostics& diagnostics);

Json heads_json_schema();

}  // namespace dtrain
