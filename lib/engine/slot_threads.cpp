#include "engine/slot_threads.h"

#include <fmt/format.h>

#include "base/error.h"
#include "collective/process_group.h"

namespace dtrain {

namespace {

/// Divides the machine's cores among `count` compute threads. Threads share cores if there are too few.
std::vector<std::vector<int>> share_cores(int count, const std::vector<int>& cores) {
  std::vector<std::vector<int>> shares(static_cast<size_t>(count));
  for (int rank = 0; rank < count; ++rank) {
    const Range range = part_of(static_cast<int64_t>(cores.size()), rank, count);
    auto& mine = shares[static_cast<size_t>(rank)];
    mine.assign(cores.begin() + range.begin, cores.begin() + range.end);
    if (mine.empty()) mine.push_back(cores[static_cast<size_t>(rank) % cores.size()]);
  }
  return shares;
}

int count_threads(const Placement& placement) {
  return static_cast<int>(placement.replicas.size() * placement.replicas.at(0).size());
}

std::unique_ptr<Context> make_context(DeviceId device, const std::vector<int>& cores, bool pin,
                                      const TrainOptions& train) {
  if (device.kind == DeviceId::Kind::gpu) return make_gpu_context(device, train.deterministic, pin);
  if (train.precision != Precision::float32)
    throw UserError(
        fmt::format("{}: precision {} is for GPUs; the CPU computes in float32 (--set "
                    "train.precision=float32)",
                    device.str(), Codec<Precision>::write(train.precision).text()));
  return make_cpu_context(device, cores, pin);
}

}  // namespace

SlotThreads::SlotThreads(const RunPlan& plan, const ModelLayout& layout)
    : slots_(layout.slots()),
      spin_(static_cast<size_t>(count_threads(plan.placement)) <= plan.cores.size()),
      team_(count_threads(plan.placement), spin_) {
  const Placement& placement = plan.placement;
  const TrainOptions& train = plan.config.train;
  const int replicas = static_cast<int>(placement.replicas.size());
  if (slots_ > 1)
    for (int slot = 0; slot < slots_; ++slot) groups_.push_back(make_local_group(replicas, spin_));
  for (int slot = 0; slot < slots_ && plan.world.size() > 1; ++slot) {
    std::vector<Collective*> local;
    for (int rank = 0; rank < replicas; ++rank) local.push_back(&replicas_of(rank, slot));
    all_.push_back(make_process_group(local, plan.world, plan.ranks));
  }
  if (plan.world.size() > 1 && slots_ > 1 && placement.replicas[0][0].kind == DeviceId::Kind::gpu) {
    ReplicaRanks ranks = plan.ranks;  // of slots
    for (int& count : ranks.counts) count *= slots_;
    std::vector<Collective*> local;
    for (int i = 0; i < team_.size(); ++i) local.push_back(&team_.member(i));
    everyone_of_all_ = make_process_group(local, plan.world, ranks);
  }
  const auto cores = share_cores(team_.size(), plan.cores);
  for (int rank = 0; rank < replicas; ++rank)
    for (int slot = 0; slot < slots_; ++slot) {
      const DeviceId device = placement.replicas[static_cast<size_t>(rank)][static_cast<size_t>(slot)];
      workers_.push_back(
          std::make_unique<Worker>(rank, make_context(device, cores[index_of(rank, slot)], spin_, train),
                                   gpu_math(train), layout.on(slot), plan.independent_rows));
    }
  run([this](int rank, int slot) { worker(rank, slot).context().attach(); });
}

Collective& SlotThreads::replicas_of(int rank, int slot) {
  if (groups_.empty()) return everyone(rank, slot);
  return *groups_[static_cast<size_t>(slot)][static_cast<size_t>(rank)];
}

void SlotThreads::run(const std::function<void(int rank, int slot)>& work) {
  team_.run([&](Collective& member) { work(member.rank() / slots_, member.rank() % slots_); });
}

void SlotThreads::abort() noexcept {
  team_.member(0).abort();
  for (const auto& group : groups_) group[0]->abort();
}

}  // namespace dtrain
