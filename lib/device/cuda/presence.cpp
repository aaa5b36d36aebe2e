// Detects the GPUs of this machine.
#include <cstdlib>

#include <fmt/format.h>

#include "base/error.h"
#include "device/cuda/check.h"
#include "device/cuda/compatibility.h"
#include "device/cuda/context.h"
#include "device/cuda/current.h"
#include "device/cuda/version.h"

namespace dtrain {
namespace {

std::string reason_for(cudaError_t status, int driver) {
  // cudaGetDeviceCount() returns the same error if the driver is missing and if it is too old.
  if (driver == 0) return "no NVIDIA driver was found";
  if (status == cudaErrorInsufficientDriver) {
    return fmt::format(
        "the NVIDIA driver is for CUDA {}, but this program needs a driver for CUDA {} or newer",
        cuda::version_text(driver), cuda::version_text(CUDART_VERSION));
  }
  if (status != cudaSuccess && status != cudaErrorNoDevice) return cuda::error_text(status);
  return std::getenv("CUDA_VISIBLE_DEVICES") ? "CUDA_VISIBLE_DEVICES names no existing GPU"
                                             : "the NVIDIA driver finds no GPU";
}

std::string list_gpus(int count) {
  std::string list;
  for (int index = 0; index < count; ++index) list += (index == 0 ? "" : ", ") + cuda::describe_gpu(index);
  return list;
}

}  // namespace

GpuPresence gpu_presence() {
  int driver = 0, count = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  const cudaError_t status = driver == 0 ? cudaErrorInsufficientDriver : cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (status == cudaSuccess && count > 0) return {cuda::limited_count(count), ""};
  return {0, reason_for(status, driver)};
}

std::unique_ptr<Context> make_gpu_context(DeviceId device, bool deterministic, bool spin) {
  const GpuPresence gpus = gpu_presence();
  if (gpus.count == 0) throw UserError(fmt::format("{}: no GPU can be used ({})", device.str(), gpus.reason));
  if (device.index >= gpus.count)
    throw UserError(
        fmt::format("{}: this GPU does not exist; available: {}", device.str(), list_gpus(gpus.count)));
  return std::make_unique<cuda::CudaContext>(device, deterministic, spin);
}

}  // namespace dtrain
