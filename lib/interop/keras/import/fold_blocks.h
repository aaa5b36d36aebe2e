// Shortens an imported model: rewrites repeated groups of layers as blocks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/node.h"
#include "nn/graph.h"

namespace dtrain {

struct FoldedModel {
  /// the model with `blocks:`; equals the original model if no group of layers is repeated
  ConfigNode model;
  Graph graph;  ///< graph of `model`; it has the nodes of the original graph in the same order
  /// Maps the old names of layers in blocks to their new names: "conv2d_4" to "block_1/conv2d".
  std::map<std::string, std::string> names;
  /// One line for each use of a block: "block: conv2d_2 to activation_9, 3 times 7 layers".
  std::vector<std::string> uses;
};

/// Folds consecutive groups of layers with equal kinds, options and connections into blocks with `repeat`.
/// `model` is an imported model, and `graph` is its graph. Each layer of `model` must have an explicit name.
/// If the layers of each copy have a common prefix in their names, the layers in the block keep the rest of
/// their names: "conv2_block1_1_conv" becomes "conv2_block/1_conv". Otherwise, the layers get automatic
/// names.
FoldedModel fold_blocks(const ConfigNode& model, const Graph& graph);

}  // namespace dtrain
