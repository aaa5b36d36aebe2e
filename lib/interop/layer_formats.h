// Conversion of layers to and from the formats of other tools. A table has one row for each kind of layer.
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

/// A layer in Keras's serialized form. `config` does not contain the keys that all layers have: name,
/// trainable and dtype.
struct KerasLayerConfig {
  std::string class_name;
  Json config;
  bool has_trainable = true;  ///< false if Keras 3 rejects the key `trainable` for this class
  /// A feature of the layer that Keras lacks, such as "rotary embeddings", so that Keras would reject the
  /// config. Empty if Keras has all features of the layer.
  std::string missing = {};
};

/// The conversions of one kind of layer (a row of the table). The functions take the options of the layer
/// with all defaults filled in, see options_of().
struct LayerFormats {
  std::string kind;  ///< dtrain's name of the kind: "conv2d"
  std::function<KerasLayerConfig(const ConfigNode& options)> to_keras = nullptr;
  /// Returns the dtrain options for the Keras layer. The reader collects problems and ignored settings.
  std::function<ConfigNode(KerasLayerReader&)> from_keras = nullptr;
  /// Adds the layer's nodes to an ONNX graph; null if the kind cannot be exported.
  std::function<void(OnnxLayer& layer)> onnx = nullptr;
  /// Adds the layer to a PyTorch class: its module, its weights and its lines of forward(). Null if the kind
  /// cannot be exported.
  std::function<void(TorchLayer& layer)> torch = nullptr;
  /// Names of additional Keras classes that correspond to this kind. The class with the name of the kind,
  /// such as "Conv2D", is always included.
  std::vector<std::string> keras_classes = {};
  /// Returns the part of the Keras layer that contains a parameter, such as "cell". Null if the layer itself
  /// contains all parameters.
  std::function<std::string(const Json& keras_config, const std::string& parameter)> keras_part = nullptr;
  /// Name of the keyword argument in which the call of the Keras layer takes a list of all inputs except the
  /// first. Empty if the call takes all inputs as one argument.
  std::string keras_further_inputs = {};
  /// Adds the options that depend on the layer's inputs to the config. Null if there are no such options.
  std::function<void(const Graph& graph, const GraphNode& node, Json& config)> complete_keras = nullptr;
  /// Returns the arguments {args, kwargs} of the Keras layer's call in the Keras 3 format, for calls that the
  /// Keras 2 format cannot express, such as calls of attention layers. Null if keras_further_inputs describes
  /// the arguments.
  std::function<Json(const ConfigNode& options, const std::vector<Json>& inputs)> keras_call = nullptr;
};

/// Keras's class of an embedding that is also called with `reverse=True`. The reversed call computes a dense
/// layer with the weights of the embedding.
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
