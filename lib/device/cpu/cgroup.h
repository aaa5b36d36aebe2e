// Memory limits set by control groups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dtrain::cpu {

/// A control group that limits this process's memory: its own group or an ancestor. All sizes are in bytes.
struct MemoryGroup {
  uint64_t limit = 0;                 // limit of memory without swap
  std::optional<uint64_t> with_swap;  // memory plus swap; nullopt if their sum is not limited
  // Memory used by all processes in the group; does not count page cache that can be reclaimed.
  uint64_t used = 0;
  std::string file;  // path of the file that holds the limit
};

/// Returns the control groups that limit this process's memory. The list begins with the process's own group
/// and continues with its ancestors. `root` is the directory that contains /proc and /sys (for tests).
std::vector<MemoryGroup> memory_groups(const std::string& root);

}  // namespace dtrain::cpu
