// GPU contexts on unusual machines.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "device/device.h"
#include "device/gpu_info.h"
#include "emulation/only_gpus.h"
#include "emulation/other_machine.h"

namespace dtrain {

using emulation::OtherMachine;

TEST_SUITE("gpu") {
  TEST_CASE("copies work even if the system cannot pin the memory") {
    const OtherMachine machine({.pinned_bytes = 4096});
    const auto context = make_gpu_context({DeviceId::Kind::gpu, 0}, false);
    context->attach();
    constexpr size_t kBytes = 1 << 20;
    const Buffer host = context->allocate_host(kBytes), small = context->allocate_host(4096);
    const Buffer device = context->allocate(kBytes), back = context->allocate_host(kBytes);
    CHECK(std::all_of(host.f32(), host.f32() + kBytes / 4, [](float each) { return each == 0; }));
    std::memset(host.data(), 7, kBytes);
    const auto consumed = context->make_event(), uploaded = context->make_event();
    context->upload(device.data(), host.data(), kBytes, *consumed, *uploaded);
    context->enqueue_copy(back.data(), device.data(), kBytes);
    context->synchronize();
    CHECK(std::memcmp(back.data(), host.data(), kBytes) == 0);
  }

  TEST_CASE("threads that share a core sleep while they wait") {
    const OtherMachine machine({});
    const auto busy = make_gpu_context({DeviceId::Kind::gpu, 0}, false, true);
    CHECK(emulation::sleepers().empty());
    const auto asleep = make_gpu_context({DeviceId::Kind::gpu, 1}, false, false);
    CHECK(emulation::sleepers() == std::set<int>{1});
  }

  TEST_CASE("GPUs that cannot be used are left out of the measurement") {
    const OtherMachine machine({.devices = 2, .oddities = {{0, {.capability = 75}}}});
    const std::vector<GpuSpeed> speeds = measure_gpus();
    REQUIRE(speeds.size() == 2);
    CHECK(speeds[0].within == 0);
    CHECK(speeds[1].within > 0);
    CHECK(speeds[1].to_gpu == std::vector<double>{0, 0});
    CHECK(speeds[1].damaged.empty());
  }

  TEST_CASE("a process uses only its part of the GPUs that CUDA lists, and numbers them from 0") {
    const OtherMachine machine({.devices = 5});
    const emulation::OnlyGpus part(2, 2);
    CHECK(gpu_presence().count == 2);
    const std::vector<GpuInfo> gpus = list_gpus();
    REQUIRE(gpus.size() == 2);
    CHECK(gpus[0].index == 0);
    CHECK(gpus[0].pci == "0000:42:00.0");
    CHECK(gpus[0].peers == std::vector<int>{1});
    CHECK(gpu_uuid(1) == "13131313-1313-1313-1313-131313131313");
    CHECK(gpu_indices() == std::map<std::string, int>{{"0000:42:00.0", 0}, {"0000:43:00.0", 1}});
    const std::vector<GpuSpeed> speeds = measure_gpus();
    REQUIRE(speeds.size() == 2);
    CHECK(speeds[0].to_gpu[1] > 0);
    CHECK(speeds[0].damaged.empty());
    CHECK(emulation::contexts() == std::set<int>{2, 3});
    CHECK_THROWS_WITH_AS(make_gpu_context({DeviceId::Kind::gpu, 2}, false),
                         doctest::Contains("gpu:2: this GPU does not exist"), UserError);
    const auto context = make_gpu_context({DeviceId::Kind::gpu, 1}, false);
    context->attach();
    CHECK_THROWS_WITH_AS(context->allocate(size_t{1} << 40), doctest::Contains("gpu:1: out of memory"),
                         Error);
  }
}

}  // namespace dtrain
