#include "device/cpu/cgroup.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "device/cpu/system_files.h"

namespace dtrain::cpu {
namespace {

/// A mounted cgroup hierarchy with a memory controller, and this process's position in it.
struct Hierarchy {
  bool second = false;  // true: cgroup v2; false: v1
  std::string mount;    // mount point
  std::string group;    // path below the mount point, such as "/a/b"; may be empty
};

/// Decodes the octal escapes that /proc/self/mountinfo uses for blanks and backslashes in paths.
std::string unescaped(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool octal = text[i] == '\\' && i + 3 < text.size();
    plain += octal
                 ? static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'))
                 : text[i];
    if (octal) i += 3;
  }
  return plain;
}

bool lists(const std::string& names, const std::string& name) {
  return ("," + names + ",").find("," + name + ",") != std::string::npos;
}

/// Finds the control group of this process in /proc/self/cgroup: "0::/a/b" (v2) or "4:memory:/a/b" (v1). If
/// the file has entries of both versions, uses the v1 entry, because the memory controller belongs to v1 in
/// this case. Returns false if the file has neither.
bool find_group(const std::string& root, bool& second, std::string& group) {
  std::ifstream file(root + "/proc/self/cgroup");
  bool found = false;
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t next = first == std::string::npos ? first : line.find(':', first + 1);
    if (next == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, next - first - 1);
    const bool memory = lists(controllers, "memory");
    if (!memory && (!controllers.empty() || found)) continue;
    second = !memory;
    group = line.substr(next + 1);
    found = true;
    if (memory) break;
  }
  return found;
}

std::optional<Hierarchy> find_hierarchy(const std::string& root) {
  Hierarchy hierarchy;
  std::string group;
  if (!find_group(root, hierarchy.second, group)) return std::nullopt;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    // The fields of a line: id, parent, device, root, mount point, options, any number of optional fields,
    // "-", file system type, source, options of the file system.
    std::istringstream fields(line);
    std::string skipped, top, mount, type, options;
    fields >> skipped >> skipped >> skipped >> top >> mount;
    while (fields >> skipped && skipped != "-") continue;
    fields >> type >> skipped >> options;
    if (hierarchy.second ? type != "cgroup2" : type != "cgroup" || !lists(options, "memory")) continue;
    hierarchy.mount = root + unescaped(mount);
    top = top == "/" ? "" : unescaped(top);
    // Inside a container, the control group may be outside the mounted subtree. In this case, only the files
    // of the mount point itself can be read.
    const bool below = group.starts_with(top + "/") && group.find("/..") == std::string::npos;
    hierarchy.group = below ? group.substr(top.size()) : "";
    if (hierarchy.group == "/") hierarchy.group.clear();
    return hierarchy;
  }
  return std::nullopt;
}

/// Returns the size, in bytes, of the page cache that the kernel can reclaim at once: "inactive_file" in
/// memory.stat. In v1, this entry does not include the page cache of child groups, so the entry
/// "total_inactive_file" is used instead.
uint64_t droppable(const std::string& folder, bool second) {
  std::ifstream statistics(folder + "/memory.stat");
  const std::string wanted = second ? "inactive_file" : "total_inactive_file";
  std::string key;
  for (uint64_t value = 0; statistics >> key >> value;)
    if (key == wanted) return value;
  return 0;
}

std::optional<MemoryGroup> read_group(const std::string& folder, bool second) {
  MemoryGroup group;
  group.file = folder + (second ? "/memory.max" : "/memory.limit_in_bytes");
  const auto limit = number_in(group.file);  // nullopt for "max"
  if (!limit) return std::nullopt;
  group.limit = *limit;
  if (second) {
    if (const auto swap = number_in(folder + "/memory.swap.max")) group.with_swap = *limit + *swap;
  } else {
    group.with_swap = number_in(folder + "/memory.memsw.limit_in_bytes");
  }
  const uint64_t used =
      number_in(folder + (second ? "/memory.current" : "/memory.usage_in_bytes")).value_or(0);
  group.used = used - std::min(used, droppable(folder, second));
  return group;
}

}  // namespace

std::vector<MemoryGroup> memory_groups(const std::string& root) {
  std::vector<MemoryGroup> groups;
  const auto hierarchy = find_hierarchy(root);
  if (!hierarchy) return groups;
  for (std::string group = hierarchy->group;; group.erase(group.rfind('/'))) {
    const std::string folder = hierarchy->mount + group;
    if (auto found = read_group(folder, hierarchy->second)) {
      found->file.erase(0, root.size());
      groups.push_back(*std::move(found));
    }
    if (group.empty()) return groups;
    // In v1, the memory of child groups does not count towards the limit of a parent that has use_hierarchy =
    // 0.
    const std::string above = hierarchy->mount + group.substr(0, group.rfind('/'));
    if (!hierarchy->second && number_in(above + "/memory.use_hierarchy") == uint64_t{0}) return groups;
  }
}

}  // namespace dtrain::cpu
