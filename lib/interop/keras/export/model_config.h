// Writes a graph as a Keras functional model.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "interop/keras/export/graph_layers.h"

namespace dtrain {

/// The formats of a model's configuration: keras_2 is the format of tf.keras 2 in .h5 files, which Keras 3
/// reads as well; keras_3 is the format of .keras files.
enum class KerasForm { keras_2, keras_3 };

/// Returns Keras's model_config, {class_name: "Functional", config: {...}}. `layers`: keras_layers(graph). If
/// a layer requires keras_3 (LayerFormats::keras_call), the form is keras_3, whatever `form` is; Keras 3
/// reads it in .h5 files, too.
Json keras_model_config(const Graph& graph, const std::string& name, const std::vector<KerasLayer>& layers,
                        KerasForm form = KerasForm::keras_2);

}  // namespace dtrain
