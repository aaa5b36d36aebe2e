// A graph's layers in Keras's order and with Keras's names. Keras assigns the weights of an .h5 file to
// layers by position in its own layer order, not by name, so a checkpoint has to follow that order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nn/graph.h"

namespace dtrain {

/// A layer of the Keras model. An activation option of another layer does not count as a layer, unless Keras
/// has this activation only as a layer. A node that shares the parameters of another node is not a new layer,
/// but a further call of that node's layer.
struct KerasLayer {
  int node = 0;      ///< the layer's first node
  std::string name;  ///< unique, without '/'
};

/// Returns all layers of a graph, including inputs, in the order of Keras's `model.layers`: sorted by depth
/// (the distance from the outputs), deepest first. Layers of equal depth have the order in which a
/// depth-first search from the outputs visits them. To write a file, pass the graph that with_mask_copies()
/// returns.
std::vector<KerasLayer> keras_layers(const Graph& graph);

/// Returns true if the Keras model has a layer for the node.
bool is_keras_layer(const Graph& graph, int node);

/// Returns the Keras class of a layer. `node` is the node that owns the layer's parameters, or a model input.
std::string keras_class_of(const Graph& graph, int node);

/// Replaces every character that Keras 2, Keras 3 or TensorFlow rejects by '_'; letters, digits, '_', '-' and
/// '.' remain. Prepends `prefix` to a name that is empty or starts with a character other than a letter,
/// digit or '.'.
std::string keras_name(std::string_view name, std::string_view prefix);

}  // namespace dtrain
