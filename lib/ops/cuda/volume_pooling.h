// Poolings of volumes by poolings of images.
#pragma once

#include <memory>

#include "ops/ops.h"

namespace dtrain::cuda {

/// Of plain volumes: a pooling of their planes, and one of the results across planes.
std::unique_ptr<Pooling> volume_pooling(Ops& ops, const PoolingSpec& spec);

}  // namespace dtrain::cuda
