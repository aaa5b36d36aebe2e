// Which loss and metrics each of the model's outputs has.
#pragma once

#include "train/run_config.h"

namespace dtrain {

/// Reads `loss:` for the outputs of config.graph, sets config.heads and total_names from it and
/// config.train.metrics, and returns the losses as written in full. Mistakes are reported.
Node parse_heads(RunConfig& config, const Node& train, Diagnostics& diagnostics);

Json heads_json_schema();

/// What can be said of a loss that is no number: throws UserError where a label is none of its output's
/// classes, with the sample that has it. `use`: "trained on", "evaluated".
void check_labels(const RunConfig& config, const Dataset& data, const std::string& use);

}  // namespace dtrain
