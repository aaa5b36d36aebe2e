// Softmax over the last axis, of the layers `softmax` and `activation: softmax`.
#pragma once

#include <memory>

#include "nn/layer.h"

namespace dtrain {

std::unique_ptr<PreparedLayer> prepare_softmax(const LayerRequest& request);

}  // namespace dtrain
