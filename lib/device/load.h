// Load of the devices. Nothing here creates a CUDA context, so monitoring takes no GPU memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dtrain {

struct CpuLoad {
  std::map<int, double> cores;  // fraction of the time since the last look() that each core was busy
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
  std::optional<int> index;  // 1 is gpu:1; nullopt if this process cannot use the GPU
  std::string pci;           // "0000:41:00.0"
  std::string name;
  std::optional<int> utilisation;              // percent, over about the last second
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

  /// Returns the reason why there are no GPUs to monitor; "" if there are.
  const std::string& reason() const;
  std::vector<GpuLoad> look() const;

 private:
  std::unique_ptr<Nvml> nvml_;
  std::map<std::string, int> indices_;  // result of gpu_indices()
};

}  // namespace dtrain
