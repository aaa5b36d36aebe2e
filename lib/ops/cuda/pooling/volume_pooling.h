// Pooling of volumes, computed as two successive poolings of images.
#pragma once

#include <memory>

#include "ops/ops.h"

namespace dtrain::cuda {

/// Pools volumes of plain layout in two steps: first within each plane, then across the planes.
std::unique_ptr<Pooling> volume_pooling(Ops& ops, const PoolingSpec& spec);

}  // namespace dtrain::cuda
