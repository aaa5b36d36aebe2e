// How busy the cores are, of files such as Linux has.
#include "device/load.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <doctest/doctest.h>

using namespace dtrain;

TEST_CASE("how busy cores were between two looks") {
  const auto root = std::filesystem::temp_directory_path() / ("dtrain-load-" + std::to_string(::getpid()));
  std::filesystem::create_directories(root / "proc");
  const auto say = [&](const char* first, const char* second) {
    std::ofstream(root / "proc/stat") << "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 " << first << " 0 0\ncpu3 " << second
                                      << " 0 0\nintr 5 6 7\ncpu9 1 1 1 1\n";
  };
  std::ofstream(root / "proc/meminfo") << "MemTotal: 1000 kB\nMemAvailable: 400 kB\n";
  say("10 0 0 90 0 0 0 0", "0 0 0 100 0 0 0 0");
  CpuWatch watch(root.string());
  // user 30 more, idle 50, waiting for disks 20; and all busy, with what is stolen.
  say("40 0 0 140 20 0 0 0", "10 10 10 100 0 10 10 10");
  CpuLoad load = watch.look();
  REQUIRE(load.cores.size() == 2);
  CHECK(load.cores.at(0) == doctest::Approx(0.3));
  CHECK(load.cores.at(3) == doctest::Approx(1.0));
  CHECK(load.memory_total == 1000 * 1024);
  CHECK(load.memory_used == 600 * 1024);
  // Nothing has passed.
  CHECK(watch.look().cores.at(0) == 0.0);
  std::filesystem::remove_all(root);
}

TEST_CASE("no GPU is a reason, not an error") {
  const GpuWatch watch;
  if (watch.reason().empty()) {
    CHECK(!watch.look().empty());
  } else {
    CHECK(watch.look().empty());
  }
}
