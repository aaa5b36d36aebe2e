// Processes that see the same GPUs. The processes are threads here.
#include "collective/machine_share.h"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "emulation/other_machine.h"
#include "processes/machine.h"
#include "support/processes.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

/// Returns the GPUs of each of two processes on a machine with this number of GPUs.
Ranges gpus_of_two(int devices) {
  const emulation::OtherMachine machine({.devices = devices});
  Ranges ranges(2);
  Processes processes(2);
  processes.run([&](World& world) {
    const Range own = own_gpus(world);
    ranges[static_cast<size_t>(world.rank())] = {own.begin, own.end};
  });
  CHECK(emulation::contexts().empty());
  return ranges;
}

/// Returns the result of find_shared_gpu() if each process uses the given GPUs.
std::string shared_by(const std::vector<std::vector<int>>& gpus) {
  std::vector<std::string> shared(gpus.size());
  Processes processes(static_cast<int>(gpus.size()));
  processes.run([&](World& world) {
    const auto rank = static_cast<size_t>(world.rank());
    shared[rank] = find_shared_gpu(world, gpus[rank]);
  });
  for (const std::string& its : shared) CHECK(its == shared[0]);
  return shared[0];
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("processes that see the same GPUs divide them, unless there are fewer GPUs than processes") {
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);  // a GPU is expected; the emulation ignores the value
    CHECK(gpus_of_two(5) == Ranges{{0, 2}, {2, 5}});
    CHECK(gpus_of_two(2) == Ranges{{0, 1}, {1, 2}});
    CHECK(gpus_of_two(1) == Ranges{{0, 1}, {0, 1}});
    CHECK(gpus_of_two(0) == Ranges{{0, 0}, {0, 0}});
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    CHECK(gpus_of_two(2) == Ranges{{0, 0}, {0, 0}});
    unsetenv("CUDA_VISIBLE_DEVICES");
  }

  TEST_CASE("two processes that use the same GPU are found") {
    const emulation::OtherMachine machine({.devices = 4});
    CHECK(shared_by({{0, 1}, {2, 3}}) == "");
    CHECK(shared_by({{0, 0}, {1}}) == "");  // one process may use a GPU twice
    CHECK(shared_by({{0}, {1, 2}, {3, 2}}) ==
          "processes 1 and 2 both use the GPU 0000:42:00.0 of " + host_name());
    CHECK(emulation::contexts().empty());
  }
}
