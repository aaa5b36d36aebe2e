// Parses a configuration into a RunConfig, or reports all its errors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/run_config.h"

namespace dtrain {

/// The purpose of a configuration.
enum class ConfigUse {
  description,  ///< a whole run; does not check whether this machine supports it
  training,     ///< a whole run; also checks that this machine supports it (placement.h)
  model,        ///< a model; `dataset` and `train` may be missing, as for imported models
};

/// Parses a configuration. Reports all errors to `diagnostics`, and returns nullopt if there are any. If the
/// model has `auto` shapes and there are no errors, opens the training split and replaces each `auto` by a
/// number. In that case, throws UserError with the location of an `auto` if the data cannot be read. `name`:
/// default for the run's name.
std::optional<RunConfig> parse_run_config(const ConfigNode& node, const std::string& name,
                                          Diagnostics& diagnostics, ConfigUse use = ConfigUse::description);

/// Reads and parses a configuration file. `sets`: changes to the configuration, each as "KEY=VALUE". Throws a
/// UserError that lists all errors.
RunConfig load_run_config(const std::string& path, const std::vector<std::string>& sets,
                          ConfigUse use = ConfigUse::description);

/// Returns the JSON schema of a run's configuration, for editors.
Json run_config_json_schema();

}  // namespace dtrain
