// Attention by dtrain's own CUDA kernels.
#pragma once

#include <memory>

#include "ops/attention.h"
#include "ops/cuda/cuda_ops.h"

namespace dtrain::cuda {

/// Returns attention that supports every spec and every compute type. The arithmetic is always float32.
std::unique_ptr<Attention> tiled_attention(CudaOps& ops, const AttentionSpec& spec);

}  // namespace dtrain::cuda
