// How busy the devices are. Nothing here initialises CUDA, so that looking takes no GPU's memory.
#pragma once

#include <cstdint>
#include <map>
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
  int index = 0;  // the driver's, whatever CUDA_VISIBLE_DEVICES says
  std::string name;
  std::optional<int> utilisation;              // per cent of the last second or so
  std::optional<int> temperature;              // degrees Celsius
  std::optional<double> power, power_limit;    // watts
  uint64_t memory_total = 0, memory_used = 0;  // bytes
  std::vector<GpuProcess> processes;
};

/// By NVIDIA's management library (NVML), which comes with the driver.
class GpuWatch {
 public:
  GpuWatch();
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  /// Why there are no GPUs to look at; "" where there are.
  const std::string& reason() const { return reason_; }
  std::vector<GpuLoad> look() const;

 private:
  template <class... Arguments>
  bool call(const char* function, Arguments... arguments) const;

  void* library_ = nullptr;  // null where it could not be opened and started
  std::string reason_;
  unsigned count_ = 0;
};

}  // namespace dtrain
