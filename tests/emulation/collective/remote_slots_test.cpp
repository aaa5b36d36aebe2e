// Channels between slots of different processes, which are threads here, on GPUs and CPUs.
#include "collective/remote_slots.h"

#include <tuple>
#include <vector>

#include "device/device.h"
#include "support/processes.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

constexpr int kArrays = 40;
constexpr size_t kFloats = 50, kBytes = kFloats * sizeof(float);

float number(int array, size_t i) {
  return 1000.0f * static_cast<float>(array) + static_cast<float>(i);
}

std::unique_ptr<Context> context_on(DeviceId::Kind kind, int index) {
  return kind == DeviceId::Kind::gpu ? make_gpu_context({kind, index}, false)
                                     : make_cpu_context({kind, index}, {available_cores().front()}, false);
}

/// Sends arrays from one device array, which is overwritten as soon as the channel allows it.
void send_all(Channel& channel, Context& context, Link::Keeping keeping) {
  const Buffer array = context.allocate(kBytes), host = context.allocate_host(kArrays * kBytes);
  for (int k = 0; k < kArrays; ++k)
    for (size_t i = 0; i < kFloats; ++i) host.f32()[static_cast<size_t>(k) * kFloats + i] = number(k, i);
  uint64_t sent = 0;
  for (int k = 0; k < kArrays; ++k) {
    if (keeping == Link::Keeping::lent) channel.wait_received(sent);
    context.enqueue_copy(array.data(), host.f32() + static_cast<size_t>(k) * kFloats, kBytes);
    sent = channel.send(array.data(), kBytes);
  }
  channel.wait_received(sent);
  context.synchronize();
}

/// Receives all arrays into one device array, and returns them.
std::vector<float> receive_all(Channel& channel, Context& context) {
  const Buffer array = context.allocate(kBytes), host = context.allocate_host(kArrays * kBytes);
  for (int k = 0; k < kArrays; ++k) channel.expect();
  for (int k = 0; k < kArrays; ++k) {
    channel.receive(array.data(), kBytes);
    context.enqueue_copy(host.f32() + static_cast<size_t>(k) * kFloats, array.data(), kBytes);
  }
  context.synchronize();
  return {host.f32(), host.f32() + kArrays * kFloats};
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE(
      "arrays are sent between the devices of two processes, with the contents that they had when they were "
      "sent") {
    constexpr auto kCpu = DeviceId::Kind::cpu, kGpu = DeviceId::Kind::gpu;
    using Keeping = Link::Keeping;
    for (const auto& [from, to] : {std::tuple{kGpu, kGpu}, {kGpu, kCpu}, {kCpu, kGpu}})
      for (const Keeping keeping : {Keeping::lent, Keeping::copied})
        for (const int most : {1, 3}) {
          CAPTURE(static_cast<int>(from));
          CAPTURE(static_cast<int>(to));
          CAPTURE(static_cast<int>(keeping));
          CAPTURE(most);
          std::vector<float> found;
          Processes processes(2);
          processes.run([&, from = from, to = to](World& world) {
            const auto context = context_on(world.rank() == 0 ? from : to, world.rank());
            context->attach();
            RemoteSlots slots(world, {0, 1}, 0);
            const auto channel =
                slots.make_channel(0, 1, keeping == Keeping::copied, *context, kBytes, keeping, most);
            if (world.rank() == 0)
              send_all(*channel, *context, keeping);
            else
              found = receive_all(*channel, *context);
          });
          CHECK(processes.queues().is_empty());
          REQUIRE(found.size() == kArrays * kFloats);
          for (int k = 0; k < kArrays; ++k)
            for (size_t i = 0; i < kFloats; ++i)
              REQUIRE(found[static_cast<size_t>(k) * kFloats + i] == number(k, i));
        }
  }

  TEST_CASE("two channels between the same slots deliver arrays that are sent alternately") {
    std::vector<float> first, second;
    Processes processes(2);
    processes.run([&](World& world) {
      const auto context = context_on(DeviceId::Kind::gpu, world.rank());
      context->attach();
      RemoteSlots slots(world, {0, 1}, 0);
      const auto make = [&](Link::Keeping keeping) {
        return slots.make_channel(0, 1, false, *context, kBytes, keeping, 2);
      };
      const auto a = make(Link::Keeping::lent), b = make(Link::Keeping::copied);
      const Buffer array = context->allocate(kBytes), host = context->allocate_host(2 * kArrays * kBytes);
      float* const of_b = host.f32() + kArrays * kFloats;
      if (world.rank() == 0) {
        for (int k = 0; k < 2 * kArrays; ++k)
          for (size_t i = 0; i < kFloats; ++i)
            host.f32()[static_cast<size_t>(k) * kFloats + i] = number(k, i);
        for (size_t k = 0; k < kArrays; ++k) {
          context->enqueue_copy(array.data(), host.f32() + k * kFloats, kBytes);
          a->wait_received(a->send(array.data(), kBytes));
          context->enqueue_copy(array.data(), of_b + k * kFloats, kBytes);
          b->send(array.data(), kBytes);
        }
        context->synchronize();
        return;
      }
      for (int k = 0; k < kArrays; ++k) {
        a->expect();
        b->expect();
      }
      for (size_t k = 0; k < kArrays; ++k) {
        b->receive(array.data(), kBytes);
        context->enqueue_copy(of_b + k * kFloats, array.data(), kBytes);
        a->receive(array.data(), kBytes);
        context->enqueue_copy(host.f32() + k * kFloats, array.data(), kBytes);
      }
      context->synchronize();
      first.assign(host.f32(), of_b);
      second.assign(of_b, of_b + kArrays * kFloats);
    });
    CHECK(processes.queues().is_empty());
    REQUIRE(first.size() == kArrays * kFloats);
    for (int k = 0; k < kArrays; ++k)
      for (size_t i = 0; i < kFloats; ++i) {
        const size_t at = static_cast<size_t>(k) * kFloats + i;
        REQUIRE(first[at] == number(k, i));
        REQUIRE(second[at] == number(kArrays + k, i));
      }
  }
}
