// Keras's activation functions, as options of other layers write them and as a layer.
#pragma once

#include <optional>

#include "config/kinds.h"
#include "nn/layer.h"
#include "ops/specs.h"

namespace dtrain {

/// One activation function with its options.
struct ActivationFunction {
  ActivationSpec spec;   // elementwise, unless
  bool softmax = false;  // over the last axis
};

template <>
const KindTable<ActivationFunction>& kinds<ActivationFunction>();

/// An `activation:` option; null is none.
using OptionalActivation = std::optional<Kind<ActivationFunction>>;

/// The activation layer that such an option stands for; empty where it is null or linear.
Kind<Layer> activation_layer(const OptionalActivation& activation);

/// Keras's serialised form: the name, or a layer of keras.layers where options differ from the defaults.
Json keras_activation(const Node& activation);

}  // namespace dtrain
