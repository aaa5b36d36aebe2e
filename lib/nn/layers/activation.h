// An activation function as a layer.
#pragma once

#include "nn/layer.h"
#include "nn/layers/activation_function.h"

namespace dtrain {

/// The activation layer that such an option stands for; empty where it is null or linear.
Configured<Layer> activation_layer(const OptionalActivation& activation);

}  // namespace dtrain
