// Owning handles of cuBLASLt and cuDNN descriptors.
#pragma once

#include <cublasLt.h>
#include <cudnn.h>

#include "device/cuda/handle.h"

namespace dtrain::cuda {

using MatmulDesc = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using MatrixLayout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using MatmulPreference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;
using DnnDescriptor = Owned<cudnnBackendDescriptor_t, cudnnBackendDestroyDescriptor>;

}  // namespace dtrain::cuda
