#include "device/cuda/check.h"

#include <string>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain::cuda {
namespace {

[[noreturn]] void fail(const char* what, const char* library, const char* text, int number) {
  throw Error(fmt::format("{}: {}: {} ({})", what, library, text, number));
}

}  // namespace

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // or a library that asks for it later would report it as its own
  fail(what, "CUDA", cudaGetErrorString(status), status);
}

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(what, "cuBLASLt", cublasLtGetStatusString(status), status);
}

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  // What cuDNN says beyond the name of the status, of this thread's last error.
  char detail[1024] = "";
  cudnnGetLastErrorString(detail, sizeof detail);
  const std::string text = detail[0] ? fmt::format("{}: {}", cudnnGetErrorString(status), detail)
                                     : std::string(cudnnGetErrorString(status));
  fail(what, "cuDNN", text.c_str(), status);
}

}  // namespace dtrain::cuda
