// NCCL over the GPUs of several processes, which are threads here.
#include "support/processes.h"

#include <algorithm>
#include <vector>

#include "collective/collective.h"
#include "device/device.h"

using namespace dtrain;
using namespace dtrain::test;

TEST_SUITE("gpu") {
  TEST_CASE("NCCL sums arrays over the GPUs of all processes") {
    constexpr size_t kFloats = 1000;
    Processes processes(2);
    std::vector<std::vector<float>> sums(2);
    processes.run([&](World& world) {
      const auto context = make_gpu_context({DeviceId::Kind::gpu, world.rank()}, false);
      const std::vector<Context*> contexts{context.get()};
      const auto group = make_nccl_group(contexts, world);
      const Buffer data = context->allocate(kFloats * sizeof(float));
      const Buffer host = context->allocate_host(kFloats * sizeof(float));
      for (size_t i = 0; i < kFloats; ++i)
        host.f32()[i] = static_cast<float>(i) + 1000.0f * static_cast<float>(world.rank());
      world.any(false);  // no process may allocate while another one sums
      context->enqueue_copy(data.data(), host.data(), kFloats * sizeof(float));
      group[0]->all_reduce(data.f32(), kFloats);
      group[0]->join();
      context->enqueue_copy(host.data(), data.data(), kFloats * sizeof(float));
      context->synchronize();
      group[0]->check();
      sums[static_cast<size_t>(world.rank())].assign(host.f32(), host.f32() + kFloats);
      world.any(false);  // no process may free memory while another one sums
    });
    for (const std::vector<float>& sum : sums)
      for (size_t i = 0; i < kFloats; ++i) REQUIRE(sum[i] == 2.0f * static_cast<float>(i) + 1000.0f);
  }

  TEST_CASE("the root of a collective call may be a GPU of another process") {
    constexpr size_t kFloats = 100;
    Processes processes(2);
    std::vector<std::vector<float>> results(2);
    processes.run([&](World& world) {
      const auto context = make_gpu_context({DeviceId::Kind::gpu, world.rank()}, false);
      const std::vector<Context*> contexts{context.get()};
      const auto group = make_nccl_group(contexts, world);
      const Buffer mine = context->allocate(kFloats * sizeof(float));
      const Buffer all = context->allocate(kFloats * sizeof(float));
      const Buffer host = context->allocate_host(kFloats * sizeof(float));
      std::fill_n(host.f32(), kFloats, static_cast<float>(world.rank() + 1));
      world.any(false);  // no process may allocate while another one sums
      context->enqueue_copy(mine.data(), host.data(), kFloats * sizeof(float));
      group[0]->reduce(mine.f32(), mine.f32(), kFloats, 1);
      group[0]->broadcast(mine.f32(), all.f32(), kFloats, 1);
      group[0]->join();
      context->enqueue_copy(host.data(), all.data(), kFloats * sizeof(float));
      context->synchronize();
      group[0]->check();
      results[static_cast<size_t>(world.rank())].assign(host.f32(), host.f32() + kFloats);
      world.any(false);  // no process may free memory while another one sums
    });
    for (const std::vector<float>& result : results) CHECK(result == std::vector<float>(kFloats, 3.0f));
  }
}
