#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "device/cuda/check.h"
#include "device/cuda/current.h"
#include "device/cuda/nvml.h"
#include "device/cuda/version.h"
#include "device/gpu_info.h"

namespace dtrain {
namespace {

using cuda::check;

/// As the driver's own tools write it: GPU-00112233-4455-6677-8899-aabbccddeeff.
std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    const bool group = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    text += fmt::format("{}{:02x}", group ? "-" : "", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

std::vector<int> peers_of(int index, int count) {
  std::vector<int> peers;
  for (int other = 0; other < count; ++other) {
    int can = 0;
    if (other != index)
      check(cudaDeviceCanAccessPeer(&can, index, other), "asking which GPUs reach each other");
    if (can) peers.push_back(other);
  }
  return peers;
}

GpuInfo info_of(int index, int count, const cuda::Nvml& nvml) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "asking what the GPU is");
  std::array<char, 32> pci{};
  check(cudaDeviceGetPCIBusId(pci.data(), static_cast<int>(pci.size()), index), "asking where the GPU is");
  const cuda::OnDevice on(index);
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for the free memory");

  GpuInfo info;
  info.index = index;
  info.name = properties.name;
  info.uuid = uuid_text(properties.uuid);
  info.pci = pci.data();
  info.memory_total = total;
  info.memory_free = free;
  info.capability = fmt::format("{}.{}", properties.major, properties.minor);
  info.multiprocessors = properties.multiProcessorCount;
  info.peers = peers_of(index, count);
  info.utilisation = nvml.utilisation(info.pci);
  info.temperature = nvml.temperature(info.pci);
  info.nvlinks = nvml.nvlinks(info.pci);
  return info;
}

/// Empty where the library cannot be opened. cuBLASLt and cuDNN 9 count alike: 130100 is 13.1.0 and 91900
/// 9.19.0.
std::string library_version(size_t (*ask)()) {
  try {
    const size_t version = ask();
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

std::string cuda_build_version() {
  return cuda::version_text(CUDART_VERSION);
}

GpuReport gpu_report() {
  GpuReport report;
  report.presence = gpu_presence();
  report.cuda_runtime = cuda::version_text(CUDART_VERSION);
  if (report.presence.count == 0) return report;

  int driver = 0;
  check(cudaDriverGetVersion(&driver), "asking for the driver's version");
  const cuda::Nvml nvml;
  report.driver = nvml.driver_version();
  report.cuda_driver = cuda::version_text(driver);
  report.cublaslt = library_version(cublasLtGetVersion);
  report.cudnn = library_version(cudnnGetVersion);
  for (int index = 0; index < report.presence.count; ++index)
    report.gpus.push_back(info_of(index, report.presence.count, nvml));
  return report;
}

}  // namespace dtrain
