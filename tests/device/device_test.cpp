#include "device/device.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "base/error.h"
#include "device/cpu/affinity.h"

namespace dtrain {

TEST_CASE("device names are parsed and formatted") {
  CHECK(DeviceId{DeviceId::Kind::gpu, 3}.str() == "gpu:3");
  CHECK(DeviceId::parse("cpu:0") == DeviceId{DeviceId::Kind::cpu, 0});
  CHECK(DeviceId::parse("gpu:12") == DeviceId{DeviceId::Kind::gpu, 12});
  for (const char* wrong :
       {"", "cpu", "cpu:", "cpu:-1", "cpu:+1", "cpu:01", "cpu:1 ", "tpu:0", "cpu:99999999999", "CPU:0"}) {
    CAPTURE(std::string(wrong));
    CHECK_FALSE(DeviceId::parse(wrong));
  }
}

TEST_CASE("buffers are zeroed, aligned and moved") {
  const auto context = make_cpu_context({}, available_cores(), false);
  for (const size_t bytes : {size_t{1}, size_t{100}, size_t{5000}, size_t{2} << 20, (size_t{5} << 20) + 12}) {
    CAPTURE(bytes);
    Buffer buffer = context->allocate(bytes);
    const size_t alignment = bytes >= (size_t{2} << 20) ? size_t{2} << 20 : 64;
    CHECK(reinterpret_cast<uintptr_t>(buffer.data()) % alignment == 0);
    CHECK(buffer.bytes() == bytes);
    auto* const first = static_cast<unsigned char*>(buffer.data());
    size_t set = 0;
    for (size_t i = 0; i < bytes; ++i) set += first[i] != 0;
    CHECK(set == 0);
    std::memset(first, 1, bytes);
    Buffer moved = std::move(buffer);
    CHECK(moved.data() == first);
    // NOLINTNEXTLINE(bugprone-use-after-move): the test checks that the moved-from buffer is empty.
    CHECK(buffer.data() == nullptr);
    moved = context->allocate(64);
    CHECK(moved.data() != nullptr);
  }
  CHECK(context->allocate(0).data() == nullptr);
  CHECK_THROWS_AS(context->allocate(size_t{1} << 60), Error);
  CHECK_THROWS_AS(context->allocate(~size_t{0}), Error);
}

TEST_CASE("copies to and from a device keep the data") {
  const auto context = make_cpu_context({}, available_cores(), false);
  const float src[3] = {1, 2, 3};
  float dst[3] = {};
  const Buffer buffer = context->allocate(sizeof src);
  context->copy_to_device(buffer.data(), src, sizeof src);
  context->copy_to_host(dst, buffer.data(), sizeof dst);
  context->synchronize();
  CHECK(std::equal(std::begin(src), std::end(src), std::begin(dst)));
}

TEST_CASE("dtrain's code and oneDNN use the same OpenMP runtime") {
  std::set<std::string> runtimes;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::string file = line.substr(line.rfind('/') + 1);
    for (const char* name : {"libgomp.", "libomp.", "libiomp5."})
      if (file.starts_with(name)) runtimes.insert(name);
  }
  CHECK(runtimes.size() == 1);
}

TEST_CASE("a context binds its thread to a core and later removes the binding") {
  const auto all = available_cores();
  REQUIRE_FALSE(all.empty());
  std::thread([&] {
    const auto before = cpu::thread_cores();
    {
      const auto context = make_cpu_context({}, {all.back()}, true);
      context->attach();
      CHECK(context->threads() == 1);
      CHECK(cpu::thread_cores() == std::vector<int>{all.back()});
      CHECK(available_cores() == all);
      // A new thread inherits the core binding of the thread that starts it. The context of the new thread
      // removes the binding.
      std::thread([&] {
        CHECK(cpu::thread_cores() == std::vector<int>{all.back()});
        const auto loose = make_cpu_context({}, {all.front()}, false);
        loose->attach();
        CHECK(cpu::thread_cores() == all);
      }).join();
      context->detach();
      CHECK(cpu::thread_cores() == before);
      context->attach();
    }
    CHECK(cpu::thread_cores() == before);
  }).join();
}

TEST_CASE("a thread that is attached to a context treats denormal numbers as zero") {
  volatile float small = 1e-30f;
  std::thread([&] {
    const auto context = make_cpu_context({}, {available_cores().front()}, false);
    CHECK(small * 1e-10f != 0);
    context->attach();
#if defined(__x86_64__)
    CHECK(small * 1e-10f == 0);
#endif
    context->detach();
    CHECK(small * 1e-10f != 0);
  }).join();
}

TEST_CASE("a context needs at least one core") {
  CHECK_THROWS_AS(make_cpu_context({}, {}, false), Error);
}

TEST_CASE("cpu_info() describes the CPU") {
  const CpuInfo info = cpu_info();
  CHECK_FALSE(info.name.empty());
  CHECK(info.cores >= 1);
  CHECK(info.cores <= static_cast<int>(available_cores().size()));
  CHECK(info.memory.total >= info.memory.available);
  CHECK(info.memory.available > 0);
  CHECK_FALSE(info.instruction_set.empty());
  MESSAGE(info.name << ", " << info.cores << " cores, " << info.instruction_set);
  const GpuPresence gpus = gpu_presence();
  CHECK((gpus.count > 0 || !gpus.reason.empty()));
}

}  // namespace dtrain
