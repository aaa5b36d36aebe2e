// From a configuration's tree to a RunConfig, or to everything that is wrong with it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/run_config.h"

namespace dtrain {

/// The purpose of a configuration.
enum class ConfigUse {
  description,  ///< a whole run, of any machine
  training,     ///< the same, and mistakes include what this machine cannot do (placement.h)
  model,        ///< the model is enough: `dataset` and `train` may be missing, as from imported models
};

/// Returns nothing if there are mistakes; all of them are reported. If the model leaves shapes to the data
/// (`auto`) and nothing is wrong, this opens the training split and puts numbers in place of each `auto`; it
/// throws UserError with the place of an `auto` if the data cannot be read. `name` is the run's name unless
/// the configuration gives one.
std::optional<RunConfig> parse_run_config(const ConfigNode& node, const std::string& name,
                                          Diagnostics& diagnostics, ConfigUse use = ConfigUse::description);

/// Reads a file. Throws UserError with everything that is wrong with it.
RunConfig load_run_config(const std::string& path, const std::vector<std::string>& sets,
                          ConfigUse use = ConfigUse::description);

/// The JSON schema of a run's configuration, for editors.
Json run_config_json_schema();

}  // namespace dtrain
