// Converts options of layers to Keras's serialized form.
#pragma once

#include <functional>
#include <string>

#include "config/node.h"
#include "interop/layer_formats.h"

namespace dtrain {

/// Returns Keras's config for the options of a layer. The keys are the same; activations, initializers,
/// regularizers and constraints are converted to Keras's serialized form. `options`: all options with their
/// values, as a Schema writes them. Returns an empty object if `options` is null.
Json keras_options(const ConfigNode& options);

/// Returns Keras's serialized form of a layer that is given as an option of another layer, such as {lstm:
/// {units: 3}}. If the inner layer uses a feature that Keras lacks, sets `missing` to its
/// KerasLayerConfig::missing.
Json keras_inner_layer(const ConfigNode& layer, std::string& missing);

/// Returns a function for LayerFormats::to_keras that uses keras_options() as the config of the Keras layer.
std::function<KerasLayerConfig(const ConfigNode&)> keras_layer(std::string class_name);
/// Like keras_layer(), but for an image layer: the function also adds `data_format: channels_last`, because
/// users can change Keras's default data format.
std::function<KerasLayerConfig(const ConfigNode&)> keras_image_layer(std::string class_name);

/// The Keras function or layer that computes an activation function.
struct KerasActivation {
  std::string function;  ///< name of Keras's function, such as "relu"
  /// class of the Keras layer, such as "ELU", if Keras has the function only as a layer; else ""
  std::string layer;
  Json layer_config = {};  ///< config of `layer`
};
/// Converts the value of an `activation:` option, such as {elu: {alpha: 0.5}}. Null stands for the linear
/// activation.
KerasActivation keras_activation(const ConfigNode& activation);

}  // namespace dtrain
