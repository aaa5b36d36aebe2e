// Bias and activation for matrix products and convolutions whose library call does not apply them.
#pragma once

#include "ops/cuda/cuda_ops.h"

namespace dtrain::cuda {

/// array[r, c] = act(array[r, c] + bias[c]), in place, in the compute type. NaN stays NaN.
void bias_activation(CudaOps& ops, const ActivationSpec& spec, const void* bias, void* array, int64_t rows,
                     int64_t columns);

}  // namespace dtrain::cuda
