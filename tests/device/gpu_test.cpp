// GPU contexts, which must behave as the interface Context requires.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "device/device.h"
#include "device/gpu_info.h"

namespace dtrain {
namespace {

constexpr size_t kFloats = 1 << 20;
constexpr size_t kBytes = kFloats * sizeof(float);

std::unique_ptr<Context> make_context() {
  auto context = make_gpu_context({DeviceId::Kind::gpu, 0}, true);
  context->attach();
  return context;
}

void fill(const Buffer& host, float value) {
  std::fill_n(host.f32(), host.bytes() / sizeof(float), value);
}

bool all_are(const float* values, float value) {
  return std::all_of(values, values + kFloats, [&](float each) { return each == value; });
}

bool device_holds(Context& context, const Buffer& device, float value) {
  std::vector<float> host(kFloats, -1.0f);
  context.copy_to_host(host.data(), device.data(), kBytes);
  return all_are(host.data(), value);
}

}  // namespace

TEST_CASE("gpu_presence() returns the number of GPUs, or the reason why there are none") {
  const GpuReport report = gpu_report();
  CHECK(report.presence.count == static_cast<int>(report.gpus.size()));
  CHECK((report.presence.count > 0) == report.presence.reason.empty());
  CHECK_THROWS_AS(make_gpu_context({DeviceId::Kind::gpu, 999}, false), UserError);
  if (report.presence.count == 0) CHECK(measure_gpus().empty());
}

TEST_SUITE("gpu") {
  TEST_CASE("gpu_report() describes each GPU") {
    const GpuReport report = gpu_report();
    REQUIRE_FALSE(report.gpus.empty());
    CHECK_FALSE(report.cuda_driver.empty());
    CHECK_FALSE(report.cublaslt.empty());
    CHECK_FALSE(report.cudnn.empty());
    const GpuInfo& gpu = report.gpus[0];
    CHECK_FALSE(gpu.name.empty());
    CHECK(gpu.uuid.size() == std::string("GPU-00112233-4455-6677-8899-aabbccddeeff").size());
    CHECK(gpu.memory_free <= gpu.memory_total);
    CHECK(gpu.memory_free > 0);
    CHECK(gpu.multiprocessors > 0);
  }

  TEST_CASE("measure_gpus() measures the rates of copies") {
    const std::vector<GpuSpeed> speeds = measure_gpus();
    const std::vector<GpuInfo> gpus = gpu_report().gpus;
    REQUIRE(speeds.size() == gpus.size());
    for (size_t i = 0; i < speeds.size(); ++i) {
      CHECK(speeds[i].to_device > 1e8);
      CHECK(speeds[i].to_host > 1e8);
      // A real GPU copies faster within its own memory than from the host. On an emulated device, all copies
      // have the same speed, because they are copies in host memory.
      CHECK(speeds[i].within > (gpus[i].name == "Emulated GPU" ? 1e8 : speeds[i].to_device));
    }
  }

  TEST_CASE("device memory is zeroed when it is allocated, and keeps copied data") {
    const auto context = make_context();
    const Buffer device = context->allocate(kBytes), host = context->allocate_host(kBytes);
    CHECK(device_holds(*context, device, 0));
    CHECK(all_are(host.f32(), 0));
    fill(host, 3);
    context->enqueue_copy(device.data(), host.data(), kBytes);
    CHECK(device_holds(*context, device, 3));
    context->enqueue_zero(device.data(), kBytes);
    context->enqueue_copy(host.data(), device.data(), kBytes);
    context->synchronize();
    CHECK(all_are(host.f32(), 0));
    CHECK(context->allocate(0).data() == nullptr);
  }

  TEST_CASE("device memory may outlive its context") {
    Buffer device;
    {
      const auto context = make_context();
      device = context->allocate(kBytes);
    }
    device = {};
    const auto context = make_context();
    CHECK(device_holds(*context, context->allocate(kBytes), 0));
  }

  TEST_CASE("an allocation larger than the GPU's memory is an error") {
    const auto context = make_context();
    std::string message;
    try {
      const Buffer device = context->allocate(size_t{1} << 50);
    } catch (const Error& error) {
      message = error.what();
    }
    CHECK(message.find("out of memory") != std::string::npos);
    CHECK(message.find("1073741824.0 MiB were requested") != std::string::npos);
    // After the failed allocation, a smaller one succeeds.
    CHECK(device_holds(*context, context->allocate(kBytes), 0));
  }

  TEST_CASE("uploads and operations alternate in order") {
    const auto context = make_context();
    const Buffer device[] = {context->allocate(kBytes), context->allocate(kBytes)};
    const Buffer staging[] = {context->allocate_host(kBytes), context->allocate_host(kBytes)};
    const std::unique_ptr<Event> uploaded[] = {context->make_event(), context->make_event()};
    const std::unique_ptr<Event> consumed[] = {context->make_event(), context->make_event()};
    const auto done = context->make_event();
    const Buffer result = context->allocate(kBytes), results = context->allocate_host(kBytes);
    for (int step = 0; step < 20; ++step) {
      const int slot = step % 2;
      uploaded[slot]->synchronize();
      fill(staging[slot], static_cast<float>(step));
      context->upload(device[slot].data(), staging[slot].data(), kBytes, *consumed[slot], *uploaded[slot]);
      context->enqueue_copy(result.data(), device[slot].data(), kBytes);
      consumed[slot]->record();
      context->enqueue_copy(results.data(), result.data(), kBytes);
      done->record();
      done->synchronize();
      CHECK(all_are(results.f32(), static_cast<float>(step)));
    }
  }

  TEST_CASE("captured work is replayed without another call of the captured function") {
    const auto context = make_context();
    const Buffer src = context->allocate_host(kBytes), dst = context->allocate(kBytes);
    int calls = 0;
    const auto replay = context->capture([&] {
      ++calls;
      context->enqueue_copy(dst.data(), src.data(), kBytes);
    });
    if (!replay) return;  // with DTRAIN_CUDA_GRAPHS=0, capture() returns null
    for (int step = 1; step <= 3; ++step) {
      fill(src, static_cast<float>(step));
      replay->run();
      CHECK(device_holds(*context, dst, static_cast<float>(step)));
    }
    CHECK(calls == 1);
  }

  TEST_CASE("a context stays usable after a failed capture") {
    const auto context = make_context();
    const Buffer src = context->allocate_host(kBytes), dst = context->allocate(kBytes);
    const auto work = [&](bool failing) {
      context->enqueue_copy(dst.data(), src.data(), kBytes);
      if (failing) throw std::runtime_error("on purpose");
    };
    const auto failing = [&] { work(true); };
    CHECK_THROWS_AS(context->capture(failing), std::runtime_error);
    fill(src, 7);
    if (const auto replay = context->capture([&] { work(false); })) replay->run();
    CHECK(device_holds(*context, dst, 7));
  }
}

}  // namespace dtrain
