#include <algorithm>
#include <cmath>
#include <dnnl.hpp>
#include <fstream>
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
  info.memory_available = kibibytes_of("MemAvailable");
  info.instruction_set = name_of(dnnl::get_effective_cpu_isa());
  return info;
}

}  // namespace dtrain
