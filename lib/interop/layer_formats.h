// Conversion of layers to and from the formats of other tools: one table row per kind of layer.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "config/registry.h"
#include "nn/layer.h"

namespace dtrain {

class KerasLayerReader;  // interop/keras/import/layer_reader.h
class OnnxLayer;         // interop/onnx/builder.h
class TorchLayer;        // interop/torch/builder.h
struct Graph;            // nn/graph.h
struct GraphNode;

/// A layer as Keras serializes it. `config` lacks the keys that all layers have: name, trainable and dtype.
struct KerasLayerConfig {
  std::string class_name;
  Json config;
  bool has_trainable = true;  ///< false: Keras 3 rejects the key `trainable` in the config of this class
  /// A feature of the layer that Keras lacks, such as "rotary embeddings". Keras rejects a config with it.
  /// Empty if Keras has all features.
  std::string missing = {};
};

/// One row: the conversions of a kind of layer. The functions take the layer's own options with all defaults
/// filled in (options_of()).
struct LayerFormats {
  std::string kind;  ///< dtrain's name of the kind: "conv2d"
  std::function<KerasLayerConfig(const ConfigNode& options)> to_keras = nullptr;
  /// Returns the dtrain options of the Keras layer; the reader records problems and ignored settings.
  std::function<ConfigNode(KerasLayerReader&)> from_keras = nullptr;
  /// Adds the layer's nodes to an ONNX graph; null if the kind cannot be exported.
  std::function<void(OnnxLayer& layer)> onnx = nullptr;
  /// Adds the layer's module, weights and lines of forward() to a PyTorch class; null if the kind cannot be
  /// exported.
  std::function<void(TorchLayer& layer)> torch = nullptr;
  /// Further Keras classes of the kind, besides the one whose name matches the kind ("Conv2D").
  std::vector<std::string> keras_classes = {};
  /// Returns the part of the Keras layer that has a parameter ("cell"); null: the layer itself.
  std::function<std::string(const Json& keras_config, const std::string& parameter)> keras_part = nullptr;
  /// The keyword argument of the Keras layer's call that takes a list of all inputs except the first. Empty
  /// if all inputs are one argument.
  std::string keras_further_inputs = {};
  /// Completes the config with options that follow from the layer's inputs; null: there are none.
  std::function<void(const Graph& graph, const GraphNode& node, Json& config)> complete_keras = nullptr;
  /// Returns the arguments of the Keras layer's call, {args, kwargs} in the form of Keras 3. Only that form
  /// can express such calls. Null if keras_further_inputs describes the arguments.
  std::function<Json(const ConfigNode& options, const std::vector<Json>& inputs)> keras_call = nullptr;
};

/// Keras's class of an embedding that is also called with `reverse=True`, as a dense layer with the weights
/// of the embedding.
inline constexpr const char* kKerasReversibleEmbedding = "ReversibleEmbedding";

/// Returns the rows of all kinds, in the order of docs/reference.md.
const std::vector<LayerFormats>& all_layer_formats();
/// Returns the row of a kind. Throws std::logic_error if there is none.
const LayerFormats& formats_of(std::string_view kind);
/// Returns the row of a Keras class; null if dtrain has no such layer.
const LayerFormats* formats_of_keras_class(const std::string& class_name);

/// Returns whether layers of this kind have parameters.
bool kind_has_weights(std::string_view kind);

/// Returns the options of a layer with all defaults filled in; null for a kind without options.
ConfigNode options_of(const Configured<Layer>& layer);
/// Returns the Keras class and config of a layer.
KerasLayerConfig keras_config_of(const Configured<Layer>& layer);

}  // namespace dtrain
