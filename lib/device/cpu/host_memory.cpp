#include <algorithm>
#include <limits>
#include <sys/resource.h>

#include <fmt/format.h>

#include "device/cpu/cgroup.h"
#include "device/cpu/system_files.h"
#include "device/device.h"

namespace dtrain {
namespace {

uint64_t plus(uint64_t a, uint64_t b) {
  return a + std::min(b, std::numeric_limits<uint64_t>::max() - a);
}

uint64_t minus(uint64_t a, uint64_t b) {
  return a - std::min(a, b);
}

/// A memory limit, the part of it that this process uses, and a description of its source.
struct Grant {
  uint64_t limit, used;
  std::string whose;
};

void consider(HostMemory& memory, const Grant& grant) {
  if (minus(grant.limit, grant.used) >= minus(memory.limit, memory.used)) return;
  memory.limit = grant.limit;
  memory.used = grant.used;
  memory.whose = grant.whose;
}

/// Takes a resource limit (`ulimit`) into account, if one is set.
void consider_resource(HostMemory& memory, int resource, uint64_t used, const char* option) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return;
  consider(memory, {limit.rlim_cur, used, fmt::format("ulimit {}", option)});
}

}  // namespace

uint64_t HostMemory::left() const {
  return minus(limit - limit / 64, used);
}

HostMemory host_memory(const std::string& root) {
  const std::string meminfo = root + "/proc/meminfo", status = root + "/proc/self/status";
  HostMemory memory;
  memory.limit = std::numeric_limits<uint64_t>::max();  // no limit
  memory.total = cpu::kilobytes_in(meminfo, "MemTotal");
  memory.available = cpu::kilobytes_in(meminfo, "MemAvailable");
  const uint64_t swap = cpu::kilobytes_in(meminfo, "SwapTotal");
  const uint64_t used = cpu::kilobytes_in(status, "RssAnon");
  if (memory.total > 0)
    consider(memory, {memory.total + swap, used,
                      swap > 0 ? "the machine's memory and swap" : "the machine's memory"});
  if (memory.available == 0) memory.available = memory.total;  // old kernels do not report MemAvailable
  for (const cpu::MemoryGroup& group : cpu::memory_groups(root)) {
    const uint64_t with_swap = std::min(plus(group.limit, swap), group.with_swap.value_or(~uint64_t{0}));
    consider(memory, {with_swap, used, fmt::format("the limit in {}", group.file)});
    memory.available = std::min(memory.available, minus(group.limit, group.used));
  }
  consider_resource(memory, RLIMIT_AS, cpu::kilobytes_in(status, "VmSize"), "-v");
  consider_resource(memory, RLIMIT_DATA, cpu::kilobytes_in(status, "VmData"), "-d");
  return memory;
}

}  // namespace dtrain
