// Converts language models to step models, which compute one position at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "run/run_config.h"

namespace dtrain {

/// Converts a run with a language model to a run with a step model, which computes one position of a text.
/// The inputs of the step model are a token of shape [1] and its position (an int32 scalar), and its output
/// has the shape [1, ...]. The layers with causal attention cache the keys and values of earlier positions,
/// so the positions of a text must be computed in order. The step model has the same weights. Returns nullopt
/// if a layer needs later positions, cannot cache the earlier positions, or has a mask. `why_not` then
/// contains the reason: "the layer 'conv1d' cannot compute one position at a time".
std::optional<RunConfig> step_config(const RunConfig& config, std::string& why_not);

/// Returns the number of bytes that a step model caches for each text: the keys and values of all layers with
/// causal attention, for all positions. Returns 0 if the model has no layer with causal attention.
int64_t kept_bytes(const RunConfig& config);

}  // namespace dtrain
