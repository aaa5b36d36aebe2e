// A graph as Keras's functional model.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "interop/keras/graph_layers.h"

namespace dtrain {

/// Keras's model_config, {class_name: "Functional", config: {...}}, in the form of tf.keras 2, which Keras 3
/// reads as well. `layers` are keras_layers(graph).
Json keras_model_config(const Graph& graph, const std::string& name, const std::vector<KerasLayer>& layers);

}  // namespace dtrain
