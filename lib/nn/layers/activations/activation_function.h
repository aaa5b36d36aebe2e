// Keras's activation functions, which are options of layers.
#pragma once

#include <optional>

#include "config/registry.h"
#include "ops/specs.h"

namespace dtrain {

/// One activation function with its options.
struct ActivationFunction {
  ActivationSpec spec;   // the function, unless it is a softmax
  bool softmax = false;  // whether it is a softmax over the last axis
};

template <>
const Registry<ActivationFunction>& registry<ActivationFunction>();

/// An `activation:` option; nullopt: no activation.
using OptionalActivation = std::optional<Configured<ActivationFunction>>;

}  // namespace dtrain
