// GPU information for `dtrain gpus`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"

namespace dtrain {

struct GpuInfo {
  int index = 0;
  /// Reason why this program cannot use the GPU or cannot query it; "" if no problem is known. Fields that
  /// could not be queried are 0 or "".
  std::string problem;
  std::string name;        // name of the GPU, such as "NVIDIA H200"
  std::string uuid;        // "GPU-5b8f0c4e-..."; for a MIG instance "MIG-5b8f0c4e-..."
  std::string pci;         // "0000:19:00.0"
  std::string capability;  // "9.0"
  int multiprocessors = 0;
  uint64_t memory_total = 0, memory_free = 0;  // bytes
  uint64_t memory_for_run = 0;  // memory_free minus the memory of this process's context, in bytes
  std::vector<int> peers;       // GPUs whose memory this GPU can access directly

  // The following values are set only if NVIDIA's management library (NVML) is available and reports them.
  std::optional<int> utilisation;  // in percent, averaged over about the last second
  std::optional<int> temperature;  // degrees Celsius
  std::optional<int> nvlinks;      // number of active links
};
/// Lists the GPUs of gpu_presence(), in the same order. The memory sizes come from NVML. Without NVML, the
/// function creates a context on each GPU, which takes time and memory. If a GPU fails, its `problem` is set,
/// and the other GPUs are still listed.
std::vector<GpuInfo> list_gpus();

/// Sets environment variables for CUDA and NCCL. Variables that are already set keep their values. CUDA will
/// number the GPUs by PCI address, like NVML and nvidia-smi. If DTRAIN_P2P is 0, NCCL will not use peer
/// access. Must be called at the start of main(), before any other thread exists and before the first CUDA
/// call.
void set_gpu_environment();

/// Restricts this process to the GPUs [first, first + count) of the GPUs that CUDA lists. From then on, gpu:0
/// is the first of these GPUs, and gpu_presence() counts only these GPUs. Has no effect on CUDA and on other
/// libraries, which may already be initialized. Must be called before any GPU is used.
void use_only_gpus(int first, int count);

/// Returns the GPU's PCI address, "0000:19:00.0"; "" if CUDA does not report it. Creates no context.
std::string gpu_pci_id(int index);
/// Returns the UUID of a GPU or MIG instance, without the prefix "GPU-" or "MIG-"; "" if CUDA does not report
/// it. Creates no context.
std::string gpu_uuid(int index);
/// Returns the index of each usable GPU, by PCI address (see pci_id() in nvml.h). Creates no context.
std::map<std::string, int> gpu_indices();

/// An NVIDIA library that this process has opened.
struct GpuLibrary {
  std::string name;     // "cuDNN"
  std::string version;  // "9.19.0"
  std::string path;     // "/usr/lib/x86_64-linux-gnu/libcudnn.so.9"
};
/// Returns the libraries that have been opened, in the order of opening. Each library is opened on the first
/// call of one of its functions.
std::vector<GpuLibrary> opened_gpu_libraries();

/// All GPUs, and the versions of the driver and the libraries ("" if unknown).
struct GpuReport {
  GpuPresence presence;
  std::vector<GpuInfo> gpus;
  std::string driver;        // "580.95.05", from NVML
  std::string cuda_driver;   // newest CUDA version that the driver supports: "13.0"
  std::string cuda_runtime;  // CUDA version that this program was built with
  std::string cublaslt, cudnn;
  std::vector<std::string> problems;  // reasons why libraries cannot be used
};
/// Collects the report. Opens cuBLASLt and cuDNN to find out their versions.
GpuReport gpu_report();

/// Copy bandwidth of a GPU in bytes per second; 0 for unusable GPUs.
struct GpuSpeed {
  double to_device = 0, to_host = 0;  // speed of copies between the GPU and pinned host memory
  // Speed of a copy within the GPU's memory; counts both the bytes read and the bytes written.
  double within = 0;
  std::vector<double> to_gpu;  // speed of copies to each GPU, by index; 0 for this GPU itself
  std::vector<int> damaged;    // indices of the GPUs to which copies do not arrive correctly
};
/// Measures all GPUs one after the other; each takes about a second. Connects all pairs of GPUs
/// (peer_access.h).
std::vector<GpuSpeed> measure_gpus();

}  // namespace dtrain
