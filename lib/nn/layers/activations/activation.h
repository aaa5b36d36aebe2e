// An activation function as a layer.
#pragma once

#include "nn/layer.h"
#include "nn/layers/activations/activation_function.h"

namespace dtrain {

/// Returns the activation layer for this option; empty if the option is null or linear.
Configured<Layer> activation_layer(const OptionalActivation& activation);

}  // namespace dtrain
