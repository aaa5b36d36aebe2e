// How busy the devices are. Nothing here makes a context of CUDA, so that looking takes no GPU's memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dtrain {

struct CpuLoad {
  std::map<int, double> cores;  // the share of the time since the last look that a core was busy, 0 to 1
  uint64_t memory_total = 0, memory_used = 0;  // bytes
};

/// The cores that this process may run on.
class CpuWatch {
 public:
  /// `root`: where /proc is.
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
  std::string name;                // "" where it cannot be found out
  std::optional<uint64_t> memory;  // bytes
};

/// What the driver does not tell is left out.
struct GpuLoad {
  std::optional<int> index;  // 1 is gpu:1; nothing of a GPU that this process cannot use
  std::string pci;           // "0000:41:00.0"
  std::string name;
  std::optional<int> utilisation;              // per cent of the last second or so
  std::optional<int> temperature;              // degrees Celsius
  std::optional<double> power, power_limit;    // watts
  uint64_t memory_total = 0, memory_used = 0;  // bytes
  std::vector<GpuProcess> processes;
};

class Nvml;

/// All GPUs of the machine, by NVIDIA's management library (nvml.h).
class GpuWatch {
 public:
  GpuWatch();
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  /// Why there are no GPUs to look at; "" if there are.
  const std::string& reason() const;
  std::vector<GpuLoad> look() const;

 private:
  std::unique_ptr<Nvml> nvml_;
  std::map<std::string, int> indices_;  // of gpu_indices()
};

}  // namespace dtrain
