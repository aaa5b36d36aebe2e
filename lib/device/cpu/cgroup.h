// The memory that control groups grant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dtrain::cpu {

/// One control group that limits this process's memory: its own, or one that it stands in. In bytes.
struct MemoryGroup {
  uint64_t limit = 0;                 // without swap
  std::optional<uint64_t> with_swap;  // of both together; nothing where that has no limit of its own
  uint64_t used = 0;                  // by all of its processes; what can be dropped at once does not count
  std::string file;                   // that says the limit
};

/// The control groups that set a limit, the process's own first. `root`: where /proc and /sys are.
std::vector<MemoryGroup> memory_groups(const std::string& root);

}  // namespace dtrain::cpu
