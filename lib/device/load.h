// Load of the devices. The functions create no CUDA context, so monitoring uses no GPU memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dtrain {

struct CpuLoad {
  // For each core, the fraction of the time since the last call of look() in which the core was busy.
  std::map<int, double> cores;
  uint64_t memory_total = 0, memory_used = 0;  // bytes
};

/// Monitors the cores that this process may run on.
class CpuWatch {
 public:
  /// `root` is the directory that contains /proc (for tests).
  explicit CpuWatch(std::string root = "");
  CpuLoad look();

 private:
  struct Ticks {
    uint64_t busy = 0, all = 0;
  };
  std::map<int, Ticks> read() const;

  const std::string root_;
  std::map<int, Ticks> before_;
};

struct GpuProcess {
  int pid = 0;
  std::string name;                // "" if unknown
  std::optional<uint64_t> memory;  // bytes
};

/// Load of one GPU. Values that the driver does not report are missing.
struct GpuLoad {
  // Index of the GPU in this process: 1 means gpu:1; nullopt if this process cannot use the GPU.
  std::optional<int> index;
  std::string pci;  // "0000:41:00.0"
  std::string name;
  std::optional<int> utilisation;              // in percent, averaged over about the last second
  std::optional<int> temperature;              // degrees Celsius
  std::optional<double> power, power_limit;    // watts
  uint64_t memory_total = 0, memory_used = 0;  // bytes
  std::vector<GpuProcess> processes;
};

class Nvml;

/// Monitors all GPUs of the machine through NVIDIA's management library (nvml.h).
class GpuWatch {
 public:
  GpuWatch();
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  /// Returns the reason why no GPUs can be monitored, or "" if there are GPUs.
  const std::string& reason() const;
  std::vector<GpuLoad> look() const;

 private:
  std::unique_ptr<Nvml> nvml_;
  std::map<std::string, int> indices_;  // result of gpu_indices()
};

}  // namespace dtrain
