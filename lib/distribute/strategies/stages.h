// Maps the layer names of a pipeline's `stages:` option to stage indices, and back.
#pragma once

#include <string>
#include <vector>

#include "config/diagnostics.h"
#include "nn/graph.h"

namespace dtrain {

/// Returns the stage of each node. `names`: scalar nodes with the name of the first layer of each stage
/// except the first. If a name refers to a use of a block, the stage begins with the first layer of the
/// block. Reports an error and returns an empty vector in three cases: a name is not a layer, the names are
/// not in the model's order, or a stage would be empty.
std::vector<int> named_stages(const Graph& graph, const std::vector<ConfigNode>& names,
                              Diagnostics& diagnostics);

/// Returns the name of the first layer of each stage except the first. This is the inverse of named_stages().
std::vector<std::string> stage_names(const Graph& graph, const std::vector<int>& stages);

/// Corrects the stages of two kinds of nodes: each model input is moved to the stage of its first reader, and
/// each activation to the stage of its layer.
void settle_stages(const Graph& graph, std::vector<int>& stages);

}  // namespace dtrain
