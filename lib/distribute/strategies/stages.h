// A pipeline's stages by the names of layers.
#pragma once

#include <string>
#include <vector>

#include "config/diagnostics.h"
#include "nn/graph.h"

namespace dtrain {

/// The stage of each node where the stages after the first begin with these layers, each named by a scalar; a
/// block's use stands for its first layer. Empty, after it was reported, where a name is none of a layer's,
/// two are not in the model's order, or a stage would have no layers.
std::vector<int> named_stages(const Graph& graph, const std::vector<ConfigNode>& names,
                              Diagnostics& diagnostics);

/// The other way around: the layers with which the stages after the first begin.
std::vector<std::string> stage_names(const Graph& graph, const std::vector<int>& stages);

/// The model's inputs go to the stage of their first reader, and activations stay with their layer.
void settle_stages(const Graph& graph, std::vector<int>& stages);

}  // namespace dtrain
