// A Keras model as its configuration describes it: layers, their calls, models within models.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"

namespace dtrain {

/// One output of one call of a layer.
struct KerasTensor {
  int layer = 0;  ///< in KerasModel::layers
  int call = 0;   ///< in KerasModelLayer::calls; 0 for an input
  int output = 0;
  auto operator<=>(const KerasTensor&) const = default;
};

/// One call of a layer ("inbound node").
struct KerasCall {
  std::vector<KerasTensor> inputs;
  Json arguments;  ///< keyword arguments other than null; an empty object as a rule
};

struct KerasModel;

struct KerasModelLayer {
  std::string name, class_name;
  Json config;
  bool trainable = true;
  std::shared_ptr<const KerasModel> model;  ///< the layer's own layers if it is a model
  std::vector<KerasCall> calls;             ///< none of an InputLayer

  bool is_input() const { return class_name == "InputLayer"; }
};

/// A Sequential is a chain of calls that begins with an InputLayer.
struct KerasModel {
  std::string name;
  std::vector<KerasModelLayer> layers;  ///< in Keras's order
  std::vector<KerasTensor> inputs, outputs;
};

/// Reads a model's configuration, {class_name, config}, as Keras 2 and 3 write it. Throws UserError for one
/// that is malformed or is of a class without a configuration of its layers.
std::shared_ptr<const KerasModel> parse_keras_model(const Json& model_config);

}  // namespace dtrain
