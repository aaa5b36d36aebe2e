// Keras's activation functions, as options of layers name them.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "config/registry.h"
#include "ops/specs.h"

namespace dtrain {

/// One activation function with its options.
struct ActivationFunction {
  ActivationSpec spec;     // the function, where it is an elementwise one
  bool softmax = false;    // it is a softmax over the last axis
  std::string keras = "";  // the function's name in Keras
  /// Where Keras has it only as a layer, the class, which takes `alpha` (Keras 3 calls LeakyReLU's otherwise,
  /// but reads this as well).
  std::string keras_layer = "";
};

template <>
const Registry<ActivationFunction>& registry<ActivationFunction>();

/// An `activation:` option; null stands for no activation.
using OptionalActivation = std::optional<Configured<ActivationFunction>>;

/// The `activation` of a layer in Keras: the function's name, or "linear" where a layer of its own follows.
Json keras_activation(const ConfigNode& activation);

}  // namespace dtrain
