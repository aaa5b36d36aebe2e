// What `dtrain gpus` says of GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"

namespace dtrain {

struct GpuInfo {
  int index = 0;
  std::string name;                            // "NVIDIA H200"
  std::string uuid;                            // "GPU-5b8f0c4e-..."
  std::string pci;                             // "0000:19:00.0"
  uint64_t memory_total = 0, memory_free = 0;  // bytes
  std::string capability;                      // "9.0"
  int multiprocessors = 0;
  std::vector<int> peers;  // the GPUs whose memory it reaches by itself

  // Where NVIDIA's management library (NVML) can be opened and knows.
  std::optional<int> utilisation;  // per cent of the last second or so
  std::optional<int> temperature;  // degrees Celsius
  std::optional<int> nvlinks;      // that are up
};

/// Versions are empty where they could not be found out.
struct GpuReport {
  GpuPresence presence;
  std::vector<GpuInfo> gpus;
  std::string driver;        // "580.95.05", by NVML
  std::string cuda_driver;   // the greatest CUDA version that the driver is for: "13.0"
  std::string cuda_runtime;  // the one that this program was built with
  std::string cublaslt, cudnn;
};
/// Throws Error where a GPU is there but does not answer.
GpuReport gpu_report();

/// How fast a GPU copies, in bytes a second.
struct GpuSpeed {
  double to_device = 0, to_host = 0;  // from and to pinned memory of the host
  double within = 0;                  // copying from itself to itself: bytes read and written
  std::vector<double> to_gpu;         // by index; of itself 0
};
/// Measures every GPU in turn, which takes about a second each.
std::vector<GpuSpeed> measure_gpus();

}  // namespace dtrain
