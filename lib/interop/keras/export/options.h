// Converts options of layers to Keras's serialized form.
#pragma once

#include <functional>
#include <string>

#include "config/node.h"
#include "interop/layer_formats.h"

namespace dtrain {

/// Returns Keras's config for options that a Schema wrote: the same keys, with activations, initializers,
/// regularizers and constraints in Keras's serialized form. Returns an empty object for null.
Json keras_options(const ConfigNode& options);

/// Returns Keras's serialized form of a layer that is an option of another layer: {lstm: {units: 3}}. Sets
/// `missing` to KerasLayerConfig::missing of that layer if it is not empty.
Json keras_inner_layer(const ConfigNode& layer, std::string& missing);

/// Returns LayerFormats::to_keras for a layer whose config is keras_options().
std::function<KerasLayerConfig(const ConfigNode&)> keras_layer(std::string class_name);
/// Like keras_layer(), for an image layer: adds `data_format: channels_last`, because Keras's default is
/// configurable.
std::function<KerasLayerConfig(const ConfigNode&)> keras_image_layer(std::string class_name);

/// Keras's form of an activation function.
struct KerasActivation {
  std::string function;    ///< name of the function: "relu"
  std::string layer;       ///< class of the layer if Keras has the function only as a layer ("ELU"), else ""
  Json layer_config = {};  ///< config of `layer`
};
/// Converts the value of an `activation:` option, such as {elu: {alpha: 0.5}}; null is linear.
KerasActivation keras_activation(const ConfigNode& activation);

}  // namespace dtrain
