// Which loss and metrics each of the model's outputs has.
#pragma once

#include "train/run_config.h"

namespace dtrain {

struct ParsedHeads {
  ConfigNode losses;     // as written in full
  bool complete = true;  // RunConfig::total_names has all names, whatever else is wrong
};

/// Reads `loss:` for the model's outputs, sets config.heads and total_names from it and config.train.metrics.
/// Mistakes are reported, also where not all is known of the outputs (empty: of none); what is hardly meant
/// is a warning, once config.graph is whole.
ParsedHeads parse_heads(RunConfig& config, std::vector<ModelOutput> outputs, const ConfigNode& train,
                        Diagnostics& diagnostics);

Json heads_json_schema();

}  // namespace dtrain
