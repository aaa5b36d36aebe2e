// Repeated structure of an imported model as blocks, as a person would write it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/node.h"
#include "nn/graph.h"

namespace dtrain {

struct FoldedModel {
  ConfigNode model;  ///< with `blocks:`; the model as it was if nothing repeats
  Graph graph;       ///< of `model`; the same nodes in the same order as before
  /// The new names of the layers that are in blocks, by their old ones: "conv2d_4": "block_1/conv2d".
  std::map<std::string, std::string> names;
  /// One line for each use of a block: "block: conv2d_2 to activation_9, 3 times 7 layers".
  std::vector<std::string> uses;
};

/// Folds runs of layers that follow each other and are equal in kinds, options and connections into blocks
/// with `repeat`. Each layer of `model`, an imported model whose graph is `graph`, must have its name
/// written. Layers in blocks keep their names after a prefix that all layers of a copy share
/// ("conv2_block1_1_conv" becomes "conv2_block/1_conv") or get automatic names.
FoldedModel fold_blocks(const ConfigNode& model, const Graph& graph);

}  // namespace dtrain
