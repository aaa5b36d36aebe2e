// Rewrites repeated structure of an imported model as blocks, as a person would write it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/node.h"
#include "nn/graph.h"

namespace dtrain {

struct FoldedModel {
  ConfigNode model;  ///< the model with `blocks:`; the original model if nothing repeats
  Graph graph;       ///< graph of `model`; its nodes are those of the original graph, in the same order
  /// New names of the layers in blocks, by old name: "conv2d_4": "block_1/conv2d".
  std::map<std::string, std::string> names;
  /// One line for each use of a block: "block: conv2d_2 to activation_9, 3 times 7 layers".
  std::vector<std::string> uses;
};

/// Folds consecutive groups of layers with equal kinds, options and connections into blocks with `repeat`.
/// `model` is an imported model with the graph `graph`; each of its layers must have an explicit name. Layers
/// in blocks either keep the part of their names after the prefix that all layers of a copy share
/// ("conv2_block1_1_conv" becomes "conv2_block/1_conv"), or get automatic names.
FoldedModel fold_blocks(const ConfigNode& model, const Graph& graph);

}  // namespace dtrain
