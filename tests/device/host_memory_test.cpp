// The memory limit of this process. The tests read it from directory trees that imitate /proc and /sys.
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "device/device.h"
#include "support/temp_dir.h"

namespace dtrain {

namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

using Files = std::map<std::string, std::string>;  // file contents by path

/// A temporary directory that contains the given files.
class Tree {
 public:
  explicit Tree(const Files& files) {
    root_.write("/proc/meminfo",
                "MemTotal:       16777216 kB\nMemFree: 1 kB\nMemAvailable:   12582912 kB\nSwapTotal: 0 kB\n");
    root_.write("/proc/self/status",
                "Name: dtrain\nVmSize: 400000 kB\nVmData: 300000 kB\nRssAnon:\t    1024 kB\n");
    for (const auto& [name, text] : files) root_.write(name, text);
  }
  HostMemory memory() const { return host_memory(root_.path()); }

 private:
  test::TempDir root_;
};

const std::string kSecond =
    "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
const std::string kFirst =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

}  // namespace

TEST_CASE("the machine's memory is the limit if no control group has one") {
  const HostMemory bare = Tree(Files{}).memory();
  CHECK(bare.total == 16 * kGiB);
  CHECK(bare.available == 12 * kGiB);
  CHECK(bare.limit == 16 * kGiB);
  CHECK(bare.whose == "the machine's memory");
  CHECK(bare.used == 1024 * 1024);
  CHECK(bare.left() == bare.limit - bare.limit / 64 - bare.used);
  const HostMemory unlimited = Tree(Files{{"/proc/self/cgroup", "0::/user.slice\n"},
                                          {"/proc/self/mountinfo", kSecond},
                                          {"/sys/fs/cgroup/user.slice/memory.max", "max\n"},
                                          {"/sys/fs/cgroup/user.slice/memory.current", "123\n"}})
                                   .memory();
  CHECK(unlimited.limit == 16 * kGiB);
  CHECK(unlimited.available == 12 * kGiB);
  const HostMemory swap =
      Tree(Files{{"/proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 4096 kB\nSwapTotal: 1048576 kB\n"}})
          .memory();
  CHECK(swap.limit == 2 * kGiB);
  CHECK(swap.total == kGiB);
  CHECK(swap.whose == "the machine's memory and swap");
}

TEST_CASE("the smallest limit of nested control groups applies") {
  const std::map<std::string, std::string> nested = {
      {"/proc/self/cgroup", "0::/a.slice/b.scope/c\n"},
      {"/proc/self/mountinfo", kSecond},
      {"/sys/fs/cgroup/a.slice/memory.max", "4294967296\n"},
      {"/sys/fs/cgroup/a.slice/memory.current", "3221225472\n"},
      {"/sys/fs/cgroup/a.slice/memory.stat", "anon 1\ninactive_file 1073741824\n"},
      {"/sys/fs/cgroup/a.slice/b.scope/memory.max", "2147483648\n"},
      {"/sys/fs/cgroup/a.slice/b.scope/memory.current", "1048576\n"},
      {"/sys/fs/cgroup/a.slice/b.scope/c/memory.max", "8589934592\n"}};
  const HostMemory memory = Tree(nested).memory();
  CHECK(memory.limit == 2 * kGiB);
  CHECK(memory.whose == "the limit in /sys/fs/cgroup/a.slice/b.scope/memory.max");
  CHECK(memory.available == 2 * kGiB - (uint64_t{1} << 20));
  CHECK(memory.total == 16 * kGiB);
  // The system can free the page cache at any time. Of the limit of 4 GiB, 3 GiB are used, but 1 GiB of it is
  // page cache, so 2 GiB are available.
  auto outer = nested;
  outer.erase("/sys/fs/cgroup/a.slice/b.scope/memory.max");
  CHECK(Tree(outer).memory().limit == 4 * kGiB);
  CHECK(Tree(outer).memory().available == 2 * kGiB);
}

TEST_CASE("swap is part of the limit as far as the control group allows it") {
  std::map<std::string, std::string> files = {
      {"/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 12582912 kB\nSwapTotal: 4194304 kB\n"},
      {"/proc/self/cgroup", "0::/job\n"},
      {"/proc/self/mountinfo", kSecond},
      {"/sys/fs/cgroup/job/memory.max", "1073741824\n"}};
  CHECK(Tree(files).memory().limit == 5 * kGiB);  // 1 GiB of the group and the 4 GiB of swap of the machine
  files["/sys/fs/cgroup/job/memory.swap.max"] = "0\n";
  CHECK(Tree(files).memory().limit == kGiB);
  files["/sys/fs/cgroup/job/memory.swap.max"] = "max\n";
  CHECK(Tree(files).memory().limit == 5 * kGiB);
}

TEST_CASE("control groups of version 1 are read") {
  std::map<std::string, std::string> files = {
      {"/proc/self/cgroup", "8:pids:/x\n4:memory:/jobs/one\n1:cpu,cpuacct:/\n0::/\n"},
      {"/proc/self/mountinfo", kFirst},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
      {"/sys/fs/cgroup/memory/memory.use_hierarchy", "1\n"},
      {"/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "1073741824\n"},
      {"/sys/fs/cgroup/memory/jobs/memory.usage_in_bytes", "536870912\n"},
      {"/sys/fs/cgroup/memory/jobs/memory.stat", "inactive_file 5\ntotal_inactive_file 268435456\n"},
      {"/sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes", "9223372036854771712\n"}};
  const HostMemory memory = Tree(files).memory();
  CHECK(memory.limit == kGiB);
  CHECK(memory.whose == "the limit in /sys/fs/cgroup/memory/jobs/memory.limit_in_bytes");
  CHECK(memory.available == kGiB - kGiB / 4);
  // The group's limit does not apply to its child groups.
  files["/sys/fs/cgroup/memory/jobs/memory.use_hierarchy"] = "0\n";
  CHECK(Tree(files).memory().limit == 16 * kGiB);
}

TEST_CASE("a container finds its own control group, however the group is mounted") {
  // If the process has no cgroup namespace, the path of its control group and the path of the mounted
  // directory are paths on the host.
  std::map<std::string, std::string> files = {
      {"/proc/self/cgroup", "4:memory:/docker/abc\n"},
      {"/proc/self/mountinfo", "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n"}};
  CHECK(Tree(files).memory().limit == kGiB);
  // If the process has a cgroup namespace, its control group is the root of the mount.
  files = {{"/proc/self/cgroup", "0::/\n"},
           {"/proc/self/mountinfo", kSecond},
           {"/sys/fs/cgroup/memory.max", "1073741824\n"}};
  CHECK(Tree(files).memory().limit == kGiB);
  // The control group is mounted from outside the namespace, and the path of the mount contains a space.
  files = {{"/proc/self/cgroup", "0::/../../other\n"},
           {"/proc/self/mountinfo", "30 24 0:26 / /sys/my\\040groups rw - cgroup2 cgroup2 rw\n"},
           {"/sys/my groups/memory.max", "1073741824\n"}};
  CHECK(Tree(files).memory().limit == kGiB);
}

TEST_CASE("malformed files do not set a limit") {
  const HostMemory memory =
      Tree(Files{{"/proc/self/cgroup", "::\n:\nmemory\n4:memory\n0::/a\n"},
                 {"/proc/self/mountinfo", "1 2\n\n30 24 0:26 / /sys/fs/cgroup rw - cgroup2\n" + kSecond},
                 {"/sys/fs/cgroup/a/memory.max", "lots\n"}})
          .memory();
  CHECK(memory.limit == 16 * kGiB);
  const HostMemory nothing = host_memory("/nonexistent");
  CHECK(nothing.left() > 16 * kGiB);
}

}  // namespace dtrain
