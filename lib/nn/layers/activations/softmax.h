// Softmax over the last axis. The layers `softmax` and `activation: softmax` use it.
#pragma once

#include <memory>

#include "nn/layer.h"

namespace dtrain {

std::unique_ptr<PreparedLayer> prepare_softmax(const LayerRequest& request);

}  // namespace dtrain
