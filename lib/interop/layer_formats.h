// How each kind of layer is written in the formats of other tools: one row per kind of layer.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "config/registry.h"
#include "nn/layer.h"

namespace dtrain {

class KerasLayerReader;  // interop/keras/layer_reader.h
class OnnxLayer;         // interop/onnx/builder.h
class TorchLayer;        // interop/torch/builder.h

/// A layer as Keras serializes it. `config` lacks the keys that all layers have: name, trainable and dtype.
struct KerasLayerConfig {
  std::string class_name;
  Json config;
};

/// One row: a kind of layer in every format. The options that the functions take are a layer's own, with all
/// defaults written (options_of).
struct LayerFormats {
  std::string kind;  ///< dtrain's name for it: "conv2d"
  std::function<KerasLayerConfig(const ConfigNode& options)> to_keras = nullptr;
  /// Returns the options of the layer that the reader reads; the reader takes note of everything else.
  std::function<ConfigNode(KerasLayerReader&)> from_keras = nullptr;
  /// Adds the layer's nodes to an ONNX graph; null for a kind that cannot be exported.
  std::function<void(OnnxLayer& layer)> onnx = nullptr;
  /// Adds the layer's module, weights and lines of forward() to a class of PyTorch's; null as above.
  std::function<void(TorchLayer& layer)> torch = nullptr;
  /// Keras's classes of the kind other than the one that is called as the kind is ("Conv2D").
  std::vector<std::string> keras_classes = {};
};

/// The rows of all kinds, in the order of the reference.
const std::vector<LayerFormats>& all_layer_formats();
/// Throws std::logic_error for a kind without a row.
const LayerFormats& formats_of(std::string_view kind);
/// Returns the row of a class of Keras's; null if dtrain has no such layer.
const LayerFormats* formats_of_keras_class(const std::string& class_name);

/// The options of a layer, all defaults written; null for a kind that has no options.
ConfigNode options_of(const Configured<Layer>& layer);
/// The class and config that Keras has for a layer.
KerasLayerConfig keras_config_of(const Configured<Layer>& layer);

}  // namespace dtrain
