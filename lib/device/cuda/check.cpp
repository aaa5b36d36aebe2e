#include "device/cuda/check.h"

#include <string>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain::cuda {
namespace {

/// Returns "gpu:0: "; "" if `device` is negative.
std::string prefix_of(int device) {
  return device < 0 ? "" : fmt::format("gpu:{}: ", device);
}

/// Returns whether an error is asynchronous (sticky). Such an error was caused by an earlier operation, and
/// every later call on the GPU returns it, too.
bool is_reported_late(cudaError_t status) {
  switch (status) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

/// Returns error_text(), with advice if the error is asynchronous.
std::string text_of(cudaError_t status) {
  return error_text(status) +
         (is_reported_late(status)
              ? "; an earlier operation on this GPU caused the error. To find this operation, set "
                "CUDA_LAUNCH_BLOCKING=1 DTRAIN_CUDA_GRAPHS=0 in the environment, or use compute-sanitizer; "
                "dmesg shows the driver's reason (Xid)"
              : "");
}

/// Throws an Error for a failed library call. `what` describes the attempted action.
[[noreturn]] void fail(const char* what, const char* library, const char* text, int number) {
  throw Error(
      fmt::format("{}{} failed: {} error {}, {}", prefix_of(chosen_device), what, library, number, text));
}

}  // namespace

std::string error_text(cudaError_t status) {
  return fmt::format("CUDA error {}, {}", static_cast<int>(status), cudaGetErrorString(status));
}

void check(cudaError_t status, const char* what, int device) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the error; otherwise another library might report it as its own error
  throw Error(fmt::format("{}{} failed: {}", prefix_of(device), what, text_of(status)));
}

std::string describe_failure(cudaError_t status, int device) {
  return prefix_of(device) + text_of(status);
}

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(what, "cuBLASLt", cublasLtGetStatusString(status), status);
}

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  // cuDNN's detailed message for this thread's last error.
  char detail[1024] = "";
  cudnnGetLastErrorString(detail, sizeof detail);
  const std::string text = detail[0] ? fmt::format("{}; {}", cudnnGetErrorString(status), detail)
                                     : std::string(cudnnGetErrorString(status));
  fail(what, "cuDNN", text.c_str(), status);
}

}  // namespace dtrain::cuda
