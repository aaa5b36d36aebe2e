// Models that compute one position at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "run/run_config.h"

namespace dtrain {

/// Returns the run of a language model, changed so that its model computes one position: its inputs are a
/// token [1] and its position (int32, a scalar), its output is [1, ...]. Causal attention keeps the keys and
/// values of earlier positions, so that the positions of a text are computed in order. The weights are those
/// of the run. Returns nullopt if a layer needs later positions, has no way to keep the earlier ones, or has
/// a mask, and says so in `why_not`: "the layer 'conv1d' cannot compute one position at a time".
std::optional<RunConfig> step_config(const RunConfig& config, std::string& why_not);

/// Returns the number of bytes that a model of step_config() keeps for each text: the keys and values of all
/// layers with causal attention, for all positions; 0 if there is no such layer.
int64_t kept_bytes(const RunConfig& config);

}  // namespace dtrain
