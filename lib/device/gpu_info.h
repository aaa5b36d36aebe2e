// GPU information for `dtrain gpus`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
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

  // Only set if NVIDIA's management library (NVML) is available and reports the value.
  std::optional<int> utilisation;  // percent, over about the last second
  std::optional<int> temperature;  // degrees Celsius
  std::optional<int> nvlinks;      // number of active links
};
/// Lists the GPUs of gpu_presence(), in order. Reads memory sizes from NVML; without NVML it creates a
/// context on each GPU, which takes time and memory. A failing GPU gets a `problem`; the others are still
/// listed.
std::vector<GpuInfo> list_gpus();

/// Sets environment variables that are not set yet, so that CUDA numbers GPUs by PCI address, as NVML and
/// nvidia-smi do, and so that NCCL does not use peer access if DTRAIN_P2P is 0. Call it at the start of
/// main(), before any other thread exists and before the first CUDA call.
void set_gpu_environment();

/// Returns the GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them: the entries of that
/// variable, or else the numbers of all GPUs. Empty if there are none, or if NVML does not know them, as when
/// GPUs are split into MIG instances. Makes no CUDA call.
std::vector<std::string> visible_gpus();
/// Hides all GPUs of visible_gpus() except `gpus`. Call it before the first CUDA call.
void show_only_gpus(std::span<const std::string> gpus);

/// Returns the GPU's PCI address, "0000:19:00.0"; "" if CUDA does not report it. Creates no context.
std::string gpu_pci_id(int index);
/// Returns the indices of the usable GPUs by PCI address (see pci_id() in nvml.h). Creates no context.
std::map<std::string, int> gpu_indices();

/// An NVIDIA library that this process has opened.
struct GpuLibrary {
  std::string name;     // "cuDNN"
  std::string version;  // "9.19.0"
  std::string path;     // "/usr/lib/x86_64-linux-gnu/libcudnn.so.9"
};
/// Returns the opened libraries in the order of opening. Each is opened on the first call of one of its
/// functions.
std::vector<GpuLibrary> opened_gpu_libraries();

/// Versions of the driver and libraries (empty if unknown) and all GPUs.
struct GpuReport {
  GpuPresence presence;
  std::vector<GpuInfo> gpus;
  std::string driver;        // "580.95.05", from NVML
  std::string cuda_driver;   // newest CUDA version that the driver supports: "13.0"
  std::string cuda_runtime;  // CUDA version that this program was built with
  std::string cublaslt, cudnn;
  std::vector<std::string> problems;  // reasons why libraries cannot be used
};
/// Collects the report; opens cuBLASLt and cuDNN.
GpuReport gpu_report();

/// Copy bandwidth of a GPU in bytes per second; 0 for unusable GPUs.
struct GpuSpeed {
  double to_device = 0, to_host = 0;  // speed of copies between the GPU and pinned host memory
  double within = 0;                  // copy within the GPU's memory, counting bytes read plus bytes written
  std::vector<double> to_gpu;         // speed of copies to each GPU; 0 to itself
  std::vector<int> damaged;           // indices of GPUs to which copies arrive damaged
};
/// Measures each GPU in turn, about a second each. Connects all pairs of GPUs (peer_access.h).
std::vector<GpuSpeed> measure_gpus();

}  // namespace dtrain
