#include <algorithm>
#include <chrono>

#include "collective/collective.h"
#include "collective/team.h"
#include "device/device.h"

namespace dtrain {

double measure_all_reduce(int gpus, size_t bytes, World& world) {
  constexpr int kRounds = 6, kAtOnce = 5;  // the first round is a warm-up
  std::vector<std::unique_ptr<Context>> contexts;
  std::vector<Context*> members;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    contexts.push_back(make_gpu_context({DeviceId::Kind::gpu, gpu}, false));
    members.push_back(contexts.back().get());
  }
  const auto groups = make_nccl_group(members, world);
  Team team(gpus, false);
  team.on_abort([&] { groups[0]->abort(); });
  std::vector<Buffer> data(contexts.size());
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    team.run([&](Collective& member) {
      const auto rank = static_cast<size_t>(member.rank());
      if (round == 0) contexts[rank]->attach();
      if (round == 0) data[rank] = contexts[rank]->allocate(bytes);
      contexts[rank]->synchronize();
      member.barrier();
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kAtOnce; ++i)
        groups[rank]->all_reduce(data[rank].f32(), static_cast<int64_t>(bytes / sizeof(float)));
      groups[rank]->join();
      contexts[rank]->synchronize();
      groups[rank]->check();
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      if (rank == 0 && round > 0) best = std::max(best, static_cast<double>(bytes) * kAtOnce / taken.count());
    });
  }
  return best;
}

}  // namespace dtrain
