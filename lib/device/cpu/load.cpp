#include "device/load.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "device/cpu/system_files.h"
#include "device/device.h"

namespace dtrain {

CpuWatch::CpuWatch(std::string root) : root_(std::move(root)), before_(read()) {}

/// Parses the lines "cpu0 user nice system idle iowait irq softirq steal ..." of /proc/stat. The numbers are
/// ticks since boot.
std::map<int, CpuWatch::Ticks> CpuWatch::read() const {
  const std::vector<int> available = available_cores();
  std::map<int, Ticks> ticks;
  std::ifstream file(root_ + "/proc/stat");
  for (std::string line; std::getline(file, line) && line.starts_with("cpu");) {
    std::istringstream words(line.substr(3));
    int core = 0;
    if (line.starts_with("cpu ") || !(words >> core)) continue;
    if (root_.empty() && std::find(available.begin(), available.end(), core) == available.end()) continue;
    Ticks& of = ticks[core];
    // The columns after the first kMost (for guest systems) are already included in other columns.
    constexpr int kIdle = 3, kWaiting = 4, kMost = 8;
    uint64_t count = 0;
    for (int i = 0; i < kMost && words >> count; ++i) {
      of.all += count;
      if (i != kIdle && i != kWaiting) of.busy += count;
    }
  }
  return ticks;
}

CpuLoad CpuWatch::look() {
  CpuLoad load;
  std::map<int, Ticks> now = read();
  for (const auto& [core, ticks] : now) {
    const Ticks& was = before_[core];
    const uint64_t all = ticks.all - std::min(ticks.all, was.all),
                   busy = ticks.busy - std::min(ticks.busy, was.busy);
    load.cores[core] = all > 0 ? static_cast<double>(busy) / static_cast<double>(all) : 0;
  }
  before_ = std::move(now);
  const HostMemory memory = host_memory(root_);
  load.memory_total = memory.total;
  load.memory_used = memory.total - std::min(memory.total, memory.available);
  return load;
}

}  // namespace dtrain
