// The structure of a Keras model: layers, their calls, models within models.
#pragma once

#include <compare>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"

namespace dtrain {

/// Keras's class of a model.
inline constexpr const char* kKerasModel = "Functional";

/// One output of one call of a layer.
struct KerasTensor {
  int layer = 0;  ///< index in KerasModel::layers
  int call = 0;   ///< index in KerasModelLayer::calls; 0 for an input
  int output = 0;
  auto operator<=>(const KerasTensor&) const = default;
};

/// A mask that is passed as an argument of a call.
struct KerasMaskArgument {
  size_t input = 0;  ///< index of the input to which the mask belongs
  KerasTensor tensor;
};

/// One call of a layer ("inbound node").
struct KerasCall {
  std::vector<KerasTensor> inputs;  ///< including tensors in keyword arguments: `value`, `initial_state`
  Json arguments;                   ///< other keyword arguments that are not null; usually an empty object
  std::vector<KerasMaskArgument> masks = {};
  std::vector<Json> constants = {};  ///< positional arguments that are neither null nor contain tensors
};

struct KerasModel;

struct KerasModelLayer {
  std::string name, class_name;
  Json config;
  bool trainable = true;
  std::shared_ptr<const KerasModel> model;  ///< the model, if the layer is a model; else null
  bool is_restored_model = false;  ///< true if the file stores the layer as a model (files/restored_layers.h)
  std::vector<KerasCall> calls;    ///< empty for an InputLayer

  bool is_input() const { return class_name == "InputLayer"; }
  /// Returns the class that the layer has in the file.
  std::string file_class() const { return is_restored_model ? kKerasModel : class_name; }
};

/// A functional or Sequential model. A Sequential is represented as a chain of calls that starts with an
/// InputLayer.
struct KerasModel {
  std::string name;
  std::vector<KerasModelLayer> layers;  ///< in Keras's order
  std::vector<KerasTensor> inputs, outputs;
  /// The keys of the inputs, in the same order, for a call that passes a mapping: the keys of the model's own
  /// mapping, or the names of the InputLayers if the model has a list of inputs.
  std::vector<std::string> input_keys = {};
};

}  // namespace dtrain
