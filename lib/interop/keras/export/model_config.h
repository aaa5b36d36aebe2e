// Writes a graph as a Keras functional model.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "interop/keras/export/graph_layers.h"

namespace dtrain {

/// Formats of a model's configuration. keras_2 is the format of tf.keras 2 in .h5 files, which Keras 3 can
/// also read. keras_3 is the format of .keras files.
enum class KerasForm { keras_2, keras_3 };

/// Returns Keras's model_config, {class_name: "Functional", config: {...}}. `layers`: the result of
/// keras_layers(graph). If a layer can only be written in the Keras 3 format (LayerFormats::keras_call), that
/// format is used even if `form` is keras_2. Keras 3 also reads it in .h5 files.
Json keras_model_config(const Graph& graph, const std::string& name, const std::vector<KerasLayer>& layers,
                        KerasForm form = KerasForm::keras_2);

}  // namespace dtrain
