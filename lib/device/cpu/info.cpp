#include <algorithm>
#include <cmath>
#include <dnnl.hpp>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "device/device.h"

namespace dtrain {
namespace {

/// What follows "KEY:" (or "KEY :") on the first line of the file that begins with it; empty without one.
std::string value_of(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos || line.find_first_not_of(" \t", key.size()) != colon) continue;
    const size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

uint64_t kibibytes_of(std::string_view key) {
  std::istringstream text(value_of("/proc/meminfo", key));
  uint64_t kibibytes = 0;
  text >> kibibytes;
  return kibibytes * 1024;
}

/// The cores' worth of time that the control group grants (cgroup 2, else 1); 0 where it sets no limit.
double cgroup_quota() {
  double quota = 0, period = 0;
  if (std::ifstream file("/sys/fs/cgroup/cpu.max"); file >> quota >> period) return quota / period;
  std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> quota;
  std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
  return quota > 0 && period > 0 ? quota / period : 0;
}

/// What the control group (2, else 1) leaves of the memory that it grants; files that are read and may be
/// dropped do not count. Without end where it sets no limit.
uint64_t cgroup_memory_left() {
  constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
  const auto number_in = [](const char* path) {
    uint64_t number = kAll;
    std::ifstream(path) >> number;  // 0 where it says "max"
    return number;
  };
  const bool second = std::ifstream("/sys/fs/cgroup/memory.max").good();
  const uint64_t limit =
      number_in(second ? "/sys/fs/cgroup/memory.max" : "/sys/fs/cgroup/memory/memory.limit_in_bytes");
  const uint64_t used =
      number_in(second ? "/sys/fs/cgroup/memory.current" : "/sys/fs/cgroup/memory/memory.usage_in_bytes");
  if (limit == 0 || limit == kAll || used == kAll) return kAll;
  uint64_t files = 0;
  std::ifstream statistics(second ? "/sys/fs/cgroup/memory.stat" : "/sys/fs/cgroup/memory/memory.stat");
  std::string key;
  for (uint64_t value = 0; statistics >> key >> value;)
    if (key == "inactive_file") files = value;
  return limit > used - std::min(files, used) ? limit - (used - std::min(files, used)) : 0;
}

std::string name_of(dnnl::cpu_isa isa) {
  switch (isa) {
    case dnnl::cpu_isa::sse41:
      return "sse41";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx2_vnni:
      return "avx2_vnni";
    case dnnl::cpu_isa::avx512_core:
      return "avx512";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_bf16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "amx";
    default:
      // Sets without a name in every version of oneDNN; the larger number is the later set.
      return isa > dnnl::cpu_isa::avx512_core_bf16 ? "avx512_fp16 or later" : "none";
  }
}

}  // namespace

CpuInfo cpu_info() {
  CpuInfo info;
  info.name = value_of("/proc/cpuinfo", "model name");
  if (info.name.empty()) info.name = "unknown CPU";
  info.cores = static_cast<int>(available_cores().size());
  if (const double quota = cgroup_quota(); quota > 0) {
    info.cores = std::clamp(static_cast<int>(std::floor(quota)), 1, info.cores);
  }
  info.memory_total = kibibytes_of("MemTotal");
  info.memory_available = std::min(kibibytes_of("MemAvailable"), cgroup_memory_left());
  info.instruction_set = name_of(dnnl::get_effective_cpu_isa());
  return info;
}

}  // namespace dtrain
