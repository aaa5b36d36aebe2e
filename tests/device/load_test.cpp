// CPU load, read from files in Linux's format.
#include "device/load.h"

#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "device/cpu/affinity.h"
#include "device/device.h"
#include "support/temp_dir.h"

using namespace dtrain;

TEST_CASE("CpuWatch returns the load of each core since the last call") {
  const test::TempDir root;
  const auto set_times = [&](const std::string& first, const std::string& second) {
    root.write("proc/stat", "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 " + first + " 0 0\ncpu3 " + second +
                                " 0 0\nintr 5 6 7\ncpu9 1 1 1 1\n");
  };
  root.write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\n");
  set_times("10 0 0 90 0 0 0 0", "0 0 0 100 0 0 0 0");
  CpuWatch watch(root.path());
  // Since the last call, the first core has spent 30 ticks in user mode, 50 idle, and 20 waiting for I/O. The
  // second core was always busy, partly because of time that was stolen by another virtual machine.
  set_times("40 0 0 140 20 0 0 0", "10 10 10 100 0 10 10 10");
  CpuLoad load = watch.look();
  REQUIRE(load.cores.size() == 2);
  CHECK(load.cores.at(0) == doctest::Approx(0.3));
  CHECK(load.cores.at(3) == doctest::Approx(1.0));
  CHECK(load.memory_total == 1000 * 1024);
  CHECK(load.memory_used == 600 * 1024);
  // If no time has passed since the last call, the load is 0.
  CHECK(watch.look().cores.at(0) == 0.0);
}

TEST_CASE("on a machine without GPUs, GpuWatch has a reason, and there is no error") {
  const GpuWatch watch;
  if (watch.reason().empty()) {
    CHECK(!watch.look().empty());
  } else {
    CHECK(watch.look().empty());
  }
}

TEST_CASE("cores_near() returns the available cores of a device's NUMA node") {
  CHECK(cpu::parse_core_list("0-2,8,10-11") == std::vector<int>{0, 1, 2, 8, 10, 11});
  CHECK(cpu::parse_core_list("5") == std::vector<int>{5});
  for (const char* wrong : {"", "-1", "3-1", "1;2", "x", "1-"}) CHECK(cpu::parse_core_list(wrong).empty());

  const test::TempDir root;
  const std::vector<int> all = available_cores();
  const auto near = [&](const std::string& list) {
    root.write("sys/bus/pci/devices/0000:41:00.0/local_cpulist", list + "\n");
    return cores_near("0000:41:00.0", root.path());
  };
  CHECK(near(std::to_string(all.back())) == std::vector<int>{all.back()});
  CHECK(near("0-4000") == all);
  CHECK(near("") == all);
  CHECK(near("8000") == all);  // none of the cores of this node is available to this process
  CHECK(cores_near("0000:42:00.0", root.path()) == all);
}

TEST_CASE("gpu_is_expected() is true if the environment or the driver suggests a GPU") {
  const test::TempDir root;
  std::filesystem::create_directories(root / "dev");
  const char* before = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string kept = before ? before : "";
  const auto visible = [&](const char* devices) {
    setenv("CUDA_VISIBLE_DEVICES", devices, 1);
    return gpu_is_expected(root.path());
  };
  CHECK(visible("0"));
  CHECK_FALSE(visible(""));
  CHECK_FALSE(visible("-1"));
  root.write("dev/nvidiactl", "\n");
  CHECK_FALSE(visible(""));  // the empty value hides all GPUs
  unsetenv("CUDA_VISIBLE_DEVICES");
  CHECK(gpu_is_expected(root.path()));
  if (before) setenv("CUDA_VISIBLE_DEVICES", kept.c_str(), 1);
}
