#pragma once

#include <memory>

#include "nn/layer.h"
#include "program/ids.h"

namespace dtrain {

/// The layers of a program by node; null of nodes without a call.
using PreparedLayers = IdVector<NodeId, std::unique_ptr<PreparedLayer>>;

}  // namespace dtrain
