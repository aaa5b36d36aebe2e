// The bias and the activation of products and convolutions whose library call applies neither.
#pragma once

#include "ops/cuda/cuda_ops.h"

namespace dtrain::cuda {

/// array[r, c] = act(array[r, c] + bias[c]), in place; of the compute type. NaN stays NaN.
void bias_activation(CudaOps& ops, const ActivationSpec& spec, const void* bias, void* array, int64_t rows,
                     int64_t columns);

}  // namespace dtrain::cuda
