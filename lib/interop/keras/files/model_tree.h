// Parses the structure of a Keras model from its configuration.
#pragma once

#include <memory>

#include "base/json.h"
#include "interop/keras/files/keras_model.h"

namespace dtrain {

/// Parses a model's configuration, {class_name, config}, written by Keras 2 or 3. Throws UserError if it is
/// malformed, or if the model's class does not list its layers.
std::shared_ptr<const KerasModel> parse_keras_model(const Json& model_config);

}  // namespace dtrain
