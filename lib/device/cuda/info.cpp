#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "device/cuda/check.h"
#include "device/cuda/current.h"
#include "device/cuda/version.h"
#include "device/gpu_info.h"
#include "device/nvml.h"

namespace dtrain {
namespace {

using cuda::check;

/// Approximate GPU memory that a CUDA context takes before any allocation, in bytes.
constexpr uint64_t kContextBytes = uint64_t{512} << 20;

/// Formats a UUID like nvidia-smi, but without the prefix "GPU-" or "MIG-":
/// 00112233-4455-6677-8899-aabbccddeeff.
std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text;
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    const bool group = i == 4 || i == 6 || i == 8 || i == 10;
    text += fmt::format("{}{:02x}", group ? "-" : "", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

/// Returns the GPUs whose memory GPU `index` can access directly; empty if the query fails.
std::vector<int> peers_of(int index, int count) {
  std::vector<int> peers;
  for (int other = 0; other < count; ++other) {
    int can = 0;
    if (other != index &&
        cudaDeviceCanAccessPeer(&can, cuda::ordinal(index), cuda::ordinal(other)) == cudaSuccess && can)
      peers.push_back(other);
  }
  cudaGetLastError();
  return peers;
}

/// Fills in the memory sizes. They come from NVML if it is available. Otherwise they come from CUDA, which
/// creates a context on the GPU.
void set_memory(GpuInfo& info, const std::optional<Nvml::Memory>& memory) {
  if (memory) {
    info.memory_total = memory->total;
    info.memory_free = memory->free;
    info.memory_for_run = memory->free - std::min(memory->free, kContextBytes);
    return;
  }
  const cuda::OnDevice on(info.index);
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "querying the free memory");
  info.memory_total = total;
  info.memory_free = info.memory_for_run = free;
}

void describe(GpuInfo& info, int count, const Nvml& nvml) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, cuda::ordinal(info.index)), "querying the GPU's properties");
  info.name = properties.name;
  info.capability = fmt::format("{}.{}", properties.major, properties.minor);
  info.multiprocessors = properties.multiProcessorCount;
  info.pci = gpu_pci_id(info.index);
  info.peers = peers_of(info.index, count);
  const Nvml::Gpu board = nvml.gpu_at(info.pci);
  const bool is_split = nvml.is_split(board);
  info.uuid = (is_split ? "MIG-" : "GPU-") + uuid_text(properties.uuid);
  info.utilisation = nvml.utilisation(board);
  info.temperature = nvml.temperature(board);
  info.nvlinks = nvml.nvlinks(board);
  info.problem = gpu_obstacle(info.index);
  set_memory(info, nvml.memory(is_split ? nvml.gpu_called(info.uuid) : board));
}

/// Opens the library and returns its version. On failure, returns "" and adds to `problems`.
std::string library_version(size_t (*ask)(), std::vector<std::string>& problems) {
  try {
    return cuda::library_version_text(ask());
  } catch (const Error& error) {
    problems.emplace_back(error.what());
    return "";
  }
}

}  // namespace

std::string cuda_build_version() {
  return cuda::version_text(CUDART_VERSION);
}

std::string gpu_pci_id(int index) {
  std::array<char, 32> pci{};
  if (cudaDeviceGetPCIBusId(pci.data(), static_cast<int>(pci.size()), cuda::ordinal(index)) == cudaSuccess)
    return normalized_pci_id(pci.data());
  cudaGetLastError();
  return "";
}

std::string gpu_uuid(int index) {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, cuda::ordinal(index)) == cudaSuccess)
    return uuid_text(properties.uuid);
  cudaGetLastError();
  return "";
}

std::map<std::string, int> gpu_indices() {
  std::map<std::string, int> indices;
  for (int index = 0; index < gpu_presence().count; ++index) indices.emplace(gpu_pci_id(index), index);
  return indices;
}

std::vector<GpuInfo> list_gpus() {
  const int count = gpu_presence().count;
  std::vector<GpuInfo> gpus(static_cast<size_t>(count));
  const Nvml nvml;
  for (int index = 0; index < count; ++index) {
    GpuInfo& info = gpus[static_cast<size_t>(index)];
    info.index = index;
    try {
      describe(info, count, nvml);
    } catch (const Error& error) {
      const std::string text = error.what(), prefix = fmt::format("gpu:{}: ", index);
      if (info.problem.empty()) info.problem = text.starts_with(prefix) ? text.substr(prefix.size()) : text;
    }
  }
  return gpus;
}

GpuReport gpu_report() {
  GpuReport report;
  report.presence = gpu_presence();
  report.cuda_runtime = cuda::version_text(CUDART_VERSION);
  if (report.presence.count == 0) return report;

  int driver = 0;
  check(cudaDriverGetVersion(&driver), "querying the driver's version");
  report.driver = Nvml().driver_version();
  report.cuda_driver = cuda::version_text(driver);
  report.cublaslt = library_version(cublasLtGetVersion, report.problems);
  report.cudnn = library_version(cudnnGetVersion, report.problems);
  const std::vector<GpuLibrary> opened = opened_gpu_libraries();
  const auto is_nvrtc = [](const GpuLibrary& library) { return library.name == "NVRTC"; };
  if (!opened.empty() && std::none_of(opened.begin(), opened.end(), is_nvrtc))
    report.problems.emplace_back(
        "NVRTC was not found, so cuDNN cannot compile kernels, and filter gradients in bfloat16 and float16 "
        "are "
        "less precise");
  report.gpus = list_gpus();
  return report;
}

}  // namespace dtrain
