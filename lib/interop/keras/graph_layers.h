// A graph's layers as Keras counts, orders and names them. Keras takes the weights of an .h5 file by position
// in its own order of layers, not by name, so a checkpoint has to follow that order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nn/graph.h"

namespace dtrain {

/// A layer of the Keras model. An activation that was written as another layer's option is no layer, unless
/// Keras has it only as a layer. A node that shares another's parameters is one more call of that layer.
struct KerasLayer {
  int node = 0;      ///< the layer's first node
  std::string name;  ///< unique, and without '/'
};

/// All layers, inputs included, in the order of Keras's `model.layers`: by depth from the outputs, deepest
/// first; layers of one depth in the order in which a depth-first search from the outputs visits them.
std::vector<KerasLayer> keras_layers(const Graph& graph);

/// Returns whether Keras has a layer for the node.
bool is_keras_layer(const GraphNode& node);

/// `name` with every character that Keras 2, Keras 3 or TensorFlow refuses replaced by '_': letters, digits,
/// '_', '-' and '.' remain. `prefix` is put before a name that starts with another character than those may.
std::string keras_name(std::string_view name, std::string_view prefix);

}  // namespace dtrain
