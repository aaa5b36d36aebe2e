#include <algorithm>
#include <cmath>
#include <dnnl.hpp>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "device/cpu/system_files.h"
#include "device/device.h"

namespace dtrain {
namespace {

/// Returns the CPU time granted by the control group, in cores (cgroup v2, else v1); 0 if unlimited.
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
      // Later instruction sets have larger values. They are not listed above, because some versions of oneDNN
      // have no names for them.
      return isa > dnnl::cpu_isa::avx512_core_bf16 ? "avx512_fp16 or later" : "none";
  }
}

}  // namespace

std::string onednn_version() {
  const dnnl_version_t& here = *dnnl::version();
  const std::string built =
      fmt::format("{}.{}.{}", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH);
  const std::string found = fmt::format("{}.{}.{}", here.major, here.minor, here.patch);
  return built == found ? built : fmt::format("{} (running with {})", built, found);
}

CpuInfo cpu_info() {
  CpuInfo info;
  info.name = cpu::value_in("/proc/cpuinfo", "model name");
  if (info.name.empty()) info.name = "unknown CPU";
  info.cores = static_cast<int>(available_cores().size());
  if (const double quota = cgroup_quota(); quota > 0) {
    info.cores = std::clamp(static_cast<int>(std::floor(quota)), 1, info.cores);
  }
  info.memory = host_memory();
  info.instruction_set = name_of(dnnl::get_effective_cpu_isa());
  return info;
}

}  // namespace dtrain
