// Turns error codes of the CUDA libraries into exceptions.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <string>

#include "device/cuda/chosen_device.h"

namespace dtrain::cuda {

/// Throws Error if a call failed. The message names the GPU, the attempted action (`what`) and the library's
/// own text, for example "gpu:1: starting a kernel failed: CUDA error 2, out of memory". `device` is the GPU
/// of the call. The default is the GPU that the calling thread has selected. If the thread has not selected a
/// GPU, the message names no GPU.
void check(cudaError_t status, const char* what, int device = chosen_device);
void check(cublasStatus_t status, const char* what);
void check(cudnnStatus_t status, const char* what);

/// Returns "CUDA error 2, out of memory".
std::string error_text(cudaError_t status);
/// Formats an error: "gpu:1: CUDA error 719, unspecified launch failure". For an asynchronous error, also
/// explains how to find the operation that caused it.
std::string describe_failure(cudaError_t status, int device);

}  // namespace dtrain::cuda
