#include "device/cuda/compatibility.h"

#include <algorithm>
#include <charconv>
#include <cuda_runtime.h>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "device/cuda/check.h"
#include "device/cuda/current.h"
#include "device/cuda/probe.h"
#include "device/cuda/version.h"
#include "device/device.h"

namespace dtrain {

namespace cuda {

namespace {

/// An element of CMAKE_CUDA_ARCHITECTURES. "90-real" means machine code, "90-virtual" means PTX, and "90"
/// means both. The letter "a", as in "90a-real", restricts the code to GPUs of exactly this capability, and
/// the letter "f" to GPUs of the same major version.
struct Architecture {
  int capability = 0;
  bool only = false;    // true: the code runs only on GPUs of exactly this capability
  bool family = false;  // true: the code runs only on GPUs of the same major version
  bool real = true, is_virtual = true;

  /// Returns whether the program has machine code that the GPU can run. The GPU's capability must have the
  /// same major version, and the same or a later minor version.
  bool has_code_for(int gpu) const {
    if (!real) return false;
    return only ? gpu == capability : gpu / 10 == capability / 10 && gpu >= capability;
  }
  bool has_ptx_for(int gpu) const {
    if (!is_virtual) return false;
    return only ? gpu == capability : gpu >= capability && (!family || gpu / 10 == capability / 10);
  }
};

/// Parses a list of architectures. Returns an empty list if an element does not begin with a number.
std::vector<Architecture> parse_architectures(std::string_view list) {
  std::vector<Architecture> all;
  while (!list.empty()) {
    std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(item.size() + 1, list.size()));
    Architecture one;
    if (item.ends_with("-real")) {
      one.is_virtual = false;
      item.remove_suffix(5);
    } else if (item.ends_with("-virtual")) {
      one.real = false;
      item.remove_suffix(8);
    }
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), one.capability);
    if (error != std::errc()) return {};
    const std::string_view suffix = item.substr(static_cast<size_t>(end - item.data()));
    one.family = suffix == "f";
    one.only = !suffix.empty() && !one.family;
    all.push_back(one);
  }
  return all;
}

std::string capability_text(int capability) {
  return fmt::format("{}.{}", capability / 10, capability % 10);
}

/// Lists the compute capabilities that the program supports, such as "8.0 to 8.9, 9.0 to 9.9, 9.0 and newer".
std::string describe(const std::vector<Architecture>& all) {
  std::vector<std::string> parts;
  for (const Architecture& one : all) {
    const std::string from = capability_text(one.capability);
    if (one.only) {
      parts.push_back(from);
    } else if (one.is_virtual && !one.family) {
      parts.push_back(from + " and newer");
    } else {
      parts.push_back(fmt::format("{} to {}.9", from, one.capability / 10));
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string kernel_obstacle(std::string_view architectures, int capability, int driver, int toolkit) {
  const std::vector<Architecture> all = parse_architectures(architectures);
  const auto any = [&](const auto& runs) { return std::any_of(all.begin(), all.end(), runs); };
  if (all.empty() || any([&](const Architecture& one) { return one.has_code_for(capability); })) return "";
  if (!any([&](const Architecture& one) { return one.has_ptx_for(capability); }))
    return fmt::format("its compute capability is {}, but this program was compiled only for {}",
                       capability_text(capability), describe(all));
  if (driver / 10 >= toolkit / 10) return "";
  return fmt::format(
      "the driver has to compile this program's kernels for compute capability {}, which needs a driver for "
      "CUDA {} or newer; the installed driver is for CUDA {}",
      capability_text(capability), version_text(toolkit), version_text(driver));
}

void require_kernels(int index) {
  const cudaError_t status = load_probe_kernel();
  if (status == cudaSuccess) return;
  cudaGetLastError();
  std::string why = gpu_obstacle(index);
  switch (status) {
    case cudaErrorInvalidDeviceFunction:  // returned by cudaFuncGetAttributes
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidKernelImage:
    case cudaErrorInvalidPtx:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorJitCompilationDisabled:
      if (why.empty()) why = error_text(status);
      throw UserError(fmt::format("{} cannot run this program: {}", describe_gpu(index), why));
    default:
      check(status, "loading a kernel");
  }
}

std::string describe_gpu(int index) {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, ordinal(index)) == cudaSuccess)
    return fmt::format("gpu:{} ({})", index, properties.name);
  cudaGetLastError();
  return fmt::format("gpu:{}", index);
}

}  // namespace cuda

std::string gpu_obstacle(int index) {
  int major = 0, minor = 0, driver = 0;
  const int device = cuda::ordinal(index);
  if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess ||
      cudaDriverGetVersion(&driver) != cudaSuccess) {
    const cudaError_t status = cudaGetLastError();
    return cuda::error_text(status);
  }
  return cuda::kernel_obstacle(DTRAIN_COMPILED_FOR, 10 * major + minor, driver, CUDART_VERSION);
}

}  // namespace dtrain
