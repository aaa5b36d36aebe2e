// Options of layers as Keras serializes them.
#pragma once

#include <functional>
#include <string>

#include "config/node.h"
#include "interop/layer_formats.h"

namespace dtrain {

/// Keras's config for options as a Schema writes them: it has the same keys, and initializers and activations
/// in Keras's serialized form. An empty object for null.
Json keras_options(const ConfigNode& options);

/// LayerFormats::to_keras of a layer whose config is keras_options().
std::function<KerasLayerConfig(const ConfigNode&)> keras_layer(std::string class_name);
/// The same for a layer of images. It says that channels come last, since Keras's own default is a setting.
std::function<KerasLayerConfig(const ConfigNode&)> keras_image_layer(std::string class_name);

/// An activation function as Keras has it.
struct KerasActivation {
  std::string function;    ///< its name: "relu"
  std::string layer;       ///< the class of its layer, where Keras has the function only as a layer: "ELU"
  Json layer_config = {};  ///< of `layer`
};
/// `activation`: a function as an `activation:` option has it, {elu: {alpha: 0.5}}; linear for null.
KerasActivation keras_activation(const ConfigNode& activation);

}  // namespace dtrain
