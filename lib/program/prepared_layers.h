#pragma once

#include <memory>

#include "nn/layer.h"
#include "program/ids.h"

namespace dtrain {

/// The prepared layers of a program, by node; null for nodes without a call.
using PreparedLayers = IdVector<NodeId, std::unique_ptr<PreparedLayer>>;

}  // namespace dtrain
