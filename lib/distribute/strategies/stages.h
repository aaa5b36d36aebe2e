// Maps the layer names of a pipeline's `stages:` option to stage indices, and back.
#pragma once

#include <string>
#include <vector>

#include "config/diagnostics.h"
#include "nn/graph.h"

namespace dtrain {

/// Returns the stage of each node. `names`: scalar nodes that name the first layer of each stage after the
/// first; the name of a block's use means the block's first layer. Reports an error and returns an empty
/// vector if a name is not a layer, names are not in the model's order, or a stage would be empty.
std::vector<int> named_stages(const Graph& graph, const std::vector<ConfigNode>& names,
                              Diagnostics& diagnostics);

/// Returns the first layer of each stage after the first, which is the inverse of named_stages().
std::vector<std::string> stage_names(const Graph& graph, const std::vector<int>& stages);

/// Moves each model input to the stage of its first reader, and each activation to the stage of its layer.
void settle_stages(const Graph& graph, std::vector<int>& stages);

}  // namespace dtrain
