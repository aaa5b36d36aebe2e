// From a configuration's tree to a RunConfig, or to everything that is wrong with it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/run_config.h"

namespace dtrain {

/// Nothing where there are mistakes, which are all reported. Where the model leaves shapes to the data
/// (`auto`) and nothing is wrong, the training split is opened and the numbers take the places of the `auto`;
/// throws UserError with such a place where the data cannot be read. `name`: the run's where none is given.
/// `to_train`: see load_run_config.
std::optional<RunConfig> parse_run_config(const ConfigNode& node, const std::string& name,
                                          Diagnostics& diagnostics, bool to_train = false);

/// Reads a file, or throws UserError with everything that is wrong with it; where `to_train`, that includes
/// what this machine cannot do (placement.h).
RunConfig load_run_config(const std::string& path, const std::vector<std::string>& sets,
                          bool to_train = false);

/// The JSON schema of a run's configuration, for editors.
Json run_config_json_schema();

}  // namespace dtrain
