// The content of a run's checkpoints.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "engine/state/model_state.h"
#include "run/record/training_state.h"
#include "run/run_config.h"

namespace dtrain {

/// Name of the slot with the weights from which training continues, in checkpoints whose main weights are
/// averages.
inline constexpr std::string_view kUnaveraged = "unaveraged";

/// Returns whether a parameter is trained, so that it has optimizer state.
inline bool is_trained(const ParameterLayout& layout, const ParameterSlice& slice) {
  return slice.offset < layout.trained();
}

/// Returns the content of a checkpoint; refers to `arrays`, which have the layout `layout`.
CheckpointContent checkpoint_content(const RunConfig& config, const ParameterLayout& layout,
                                     const HostArrays& arrays, const TrainingState& state,
                                     int64_t steps_per_epoch);

/// A function that returns an array of a parameter: its values or a slot.
using ArrayOf = std::function<const float*(const ParameterSlice&)>;
/// Like checkpoint_content() above, for arrays at any addresses. `slots` is in the optimizer's order.
CheckpointContent checkpoint_content(const RunConfig& config, const ParameterLayout& layout,
                                     const ArrayOf& values, const std::vector<ArrayOf>& slots,
                                     const TrainingState& state, int64_t steps_per_epoch);

}  // namespace dtrain
