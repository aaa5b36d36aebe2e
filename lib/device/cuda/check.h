// Errors of the CUDA libraries become exceptions.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <string>

#include "device/cuda/chosen_device.h"

namespace dtrain::cuda {

/// Throws Error where a call failed: "gpu:1: starting a kernel: CUDA: out of memory (2)", that is the GPU,
/// what was tried (`what`), and the library's own text. `device`: the GPU that the call was for; by default
/// the one that the calling thread has chosen. No GPU is named where it has chosen none.
void check(cudaError_t status, const char* what, int device = chosen_device);
void check(cublasStatus_t status, const char* what);
void check(cudnnStatus_t status, const char* what);

/// "gpu:1: CUDA: unspecified launch failure (719)", and for an error that CUDA reports later than it happened
/// how to find its place.
std::string describe_failure(cudaError_t status, int device);

}  // namespace dtrain::cuda
