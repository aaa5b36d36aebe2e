// What `dtrain gpus` says of GPUs.
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
  /// Why this program cannot compute on it, or cannot say; "" if nothing is known against it. What could not
  /// be found out of such a GPU is 0 or "".
  std::string problem;
  std::string name;        // "NVIDIA H200"
  std::string uuid;        // "GPU-5b8f0c4e-...", of a MIG instance "MIG-5b8f0c4e-..."
  std::string pci;         // "0000:19:00.0"
  std::string capability;  // "9.0"
  int multiprocessors = 0;
  uint64_t memory_total = 0, memory_free = 0;  // bytes
  uint64_t memory_for_run = 0;  // of memory_free, bytes that are left once this process has a context there
  std::vector<int> peers;       // the GPUs whose memory it reaches by itself

  // Where NVIDIA's management library (NVML) can be opened and knows.
  std::optional<int> utilisation;  // per cent of the last second or so
  std::optional<int> temperature;  // degrees Celsius
  std::optional<int> nvlinks;      // that are up
};
/// The GPUs of gpu_presence(), in order. NVML tells their memory, so that none gets a context, which takes
/// time and memory; without NVML they do. A GPU that fails has a `problem`, and does not keep the others from
/// being listed.
std::vector<GpuInfo> list_gpus();

/// Tells CUDA to number GPUs as NVML and nvidia-smi do, in the order of their PCI addresses, and NCCL to do
/// without peer access if the environment says DTRAIN_P2P=0; by variables of the environment, which stay as
/// they are if they are set. For the beginning of main(): before another thread exists, and before CUDA is
/// asked anything.
void set_gpu_environment();

/// The GPU's address on the PCI bus, "0000:19:00.0"; "" if CUDA does not tell. Makes no context.
std::string gpu_pci_id(int index);
/// The numbers of the GPUs that this process can use, by their PCI addresses (pci_id() in nvml.h). Makes no
/// context.
std::map<std::string, int> gpu_indices();

/// A library of NVIDIA's as this process has opened it.
struct GpuLibrary {
  std::string name;     // "cuDNN"
  std::string version;  // "9.19.0"
  std::string path;     // "/usr/lib/x86_64-linux-gnu/libcudnn.so.9"
};
/// In the order in which they were opened, which is when one of their functions was first called.
std::vector<GpuLibrary> opened_gpu_libraries();

/// Versions are empty where they could not be found out.
struct GpuReport {
  GpuPresence presence;
  std::vector<GpuInfo> gpus;
  std::string driver;        // "580.95.05", by NVML
  std::string cuda_driver;   // the greatest CUDA version that the driver is for: "13.0"
  std::string cuda_runtime;  // the one that this program was built with
  std::string cublaslt, cudnn;
  std::vector<std::string> problems;  // why a library cannot be used
};
/// Opens cuBLASLt and cuDNN.
GpuReport gpu_report();

/// How fast a GPU copies, in bytes a second; 0 of a GPU that cannot be used.
struct GpuSpeed {
  double to_device = 0, to_host = 0;  // from and to pinned memory of the host
  double within = 0;                  // copying from itself to itself: bytes read and written
  std::vector<double> to_gpu;         // by index; of itself 0
  std::vector<int> damaged;           // GPUs at which what it copies there arrives damaged
};
/// Measures every GPU in turn, which takes about a second each. Pairs of GPUs are connected (peer_access.h).
std::vector<GpuSpeed> measure_gpus();

}  // namespace dtrain
