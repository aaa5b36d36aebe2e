// Writes a Keras model within the exported model. Such an inner model stands for a dtrain layer that Keras
// lacks.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/shape.h"

namespace dtrain {

/// Returns the shape of a batch in Keras's notation, such as [null, 28, 28, 1].
Json keras_batch_shape(const Shape& sample);

/// Returns a reference to the output of a layer of the inner model.
Json keras_inner_tensor(const std::string& layer, const Shape& sample);

/// Returns a layer of the inner model that is called once. `arguments`: the arguments of the call; empty for
/// an InputLayer.
Json keras_inner_layer_entry(const std::string& class_name, const std::string& name, Json config,
                             std::vector<Json> arguments, const char* dtype = "float32");

/// Like keras_inner_layer_entry(), but for one of Keras's operations. `module`: the Python module of the
/// operation, such as "keras.src.ops.numpy".
Json keras_inner_operation(const std::string& module, const std::string& class_name, const std::string& name,
                           Json config, std::vector<Json> arguments);

/// Returns the config of the inner model. `outer`: a config with the keys `name` and `trainable`. `inputs`
/// and `output`: names of layers of the inner model.
Json keras_inner_model(const Json& outer, Json layers, const std::vector<std::string>& inputs,
                       const std::string& output);

}  // namespace dtrain
