// Attention by dtrain's own kernels.
#pragma once

#include <memory>

#include "ops/attention.h"
#include "ops/cuda/cuda_ops.h"

namespace dtrain::cuda {

/// Computes every spec in every type, with float32 arithmetic.
std::unique_ptr<Attention> tiled_attention(CudaOps& ops, const AttentionSpec& spec);

}  // namespace dtrain::cuda
