// From a configuration's tree to a RunConfig, or to everything that is wrong with it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/run_config.h"

namespace dtrain {

/// Nothing on mistakes, all of them reported. `name` where the configuration gives none. `to_train`: as of
/// load_run_config.
std::optional<RunConfig> parse_run_config(const ConfigNode& node, const std::string& name,
                                          Diagnostics& diagnostics, bool to_train = false);

/// From a file, or throws UserError with everything that is wrong; that it can be trained on this machine
/// (placement.h) belongs to it where `to_train`.
RunConfig load_run_config(const std::string& path, const std::vector<std::string>& sets,
                          bool to_train = false);

/// The JSON schema of a run's configuration, for editors.
Json run_config_json_schema();

}  // namespace dtrain
