// Errors of the CUDA libraries become exceptions.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>

namespace dtrain::cuda {

/// Where a call failed: throws Error that says `what` was tried ("starting a kernel") and the library's own
/// text.
void check(cudaError_t status, const char* what);
void check(cublasStatus_t status, const char* what);
void check(cudnnStatus_t status, const char* what);

}  // namespace dtrain::cuda
