#include "engine/slot_threads.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "collective/process_group.h"

namespace dtrain {

namespace {

/// Divides the machine's cores among `count` compute threads. If there are fewer cores than threads, some
/// threads share a core.
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

int count_threads(const RunPlan& plan) {
  return static_cast<int>(std::ssize(plan.placement.replicas) * plan.slots_of(plan.world.rank()).size());
}

std::unique_ptr<Context> make_context(DeviceId device, const std::vector<int>& cores, bool pin,
                                      const TrainOptions& train) {
  if (device.kind == DeviceId::Kind::gpu) return make_gpu_context(device, train.deterministic, pin);
  if (train.precision != Precision::float32)
    throw UserError(
        fmt::format("{}: precision {} is for GPUs, but the CPU computes only in float32; use --set "
                    "train.precision=float32",
                    device.str(), Codec<Precision>::write(train.precision).text()));
  return make_cpu_context(device, cores, pin);
}

}  // namespace

SlotThreads::SlotThreads(const RunPlan& plan, const ModelLayout& layout)
    : slots_(layout.slots()),
      here_(plan.slots_of(plan.world.rank())),
      spin_(static_cast<size_t>(count_threads(plan)) <= plan.cores.size()),
      team_(count_threads(plan), spin_) {
  const Placement& placement = plan.placement;
  const TrainOptions& train = plan.config.train;
  const int replicas = static_cast<int>(placement.replicas.size());
  if (slots_ > 1)
    for (int slot = first_slot(); slot < end_slot(); ++slot)
      groups_.push_back(make_local_group(replicas, spin_));
  if (plan.world.size() > 1) join_processes(plan);
  const auto cores = share_cores(team_.size(), plan.cores);
  for (int rank = 0; rank < replicas; ++rank)
    for (int slot = first_slot(); slot < end_slot(); ++slot) {
      const DeviceId device = placement.replicas[static_cast<size_t>(rank)][static_cast<size_t>(slot)];
      workers_.push_back(
          std::make_unique<Worker>(rank, make_context(device, cores[index_of(rank, slot)], spin_, train),
                                   gpu_math(train), layout.on(slot), plan.independent_rows));
    }
  run([this](int rank, int slot) { worker(rank, slot).context().attach(); });
}

/// Creates all_ only if each process has whole replicas. If each replica is split across processes, all_ is
/// not needed, because all replicas of a slot are in the same process.
void SlotThreads::join_processes(const RunPlan& plan) {
  const int replicas = static_cast<int>(plan.placement.replicas.size());
  for (int slot = 0; slot < slots_ && !plan.has_divided_replicas(); ++slot) {
    std::vector<Collective*> local;
    for (int rank = 0; rank < replicas; ++rank) local.push_back(&replicas_of(rank, slot));
    all_.push_back(make_process_group(local, plan.world, plan.ranks));
  }
  const bool on_gpus = plan.placement.replicas[0][0].kind == DeviceId::Kind::gpu;
  if (slots_ == 1 || !(on_gpus || plan.has_divided_replicas())) return;
  ReplicaRanks ranks{plan.world.rank(), {}};  // these ranks count slots instead of replicas
  std::vector<int> places;
  for (int process = 0; process < plan.world.size(); ++process) {
    const Range slots = plan.slots_of(process);
    const Range of_process = plan.has_divided_replicas() ? Range{0, replicas} : plan.ranks.of(process);
    ranks.counts.push_back(static_cast<int>(of_process.size() * slots.size()));
    for (int64_t rank = of_process.begin; rank < of_process.end; ++rank)
      for (int64_t slot = slots.begin; slot < slots.end; ++slot)
        places.push_back(static_cast<int>(rank * slots_ + slot));
  }
  std::vector<Collective*> local;
  for (int i = 0; i < team_.size(); ++i) local.push_back(&team_.member(i));
  everyone_of_all_ = make_process_group(local, plan.world, ranks, std::move(places));
}

Collective& SlotThreads::replicas_of(int rank, int slot) {
  if (groups_.empty()) return everyone(rank, slot);
  return *groups_[static_cast<size_t>(slot - first_slot())][static_cast<size_t>(rank)];
}

void SlotThreads::run(const std::function<void(int rank, int slot)>& work) {
  const int count = static_cast<int>(here_.size());
  team_.run([&](Collective& member) { work(member.rank() / count, first_slot() + member.rank() % count); });
}

void SlotThreads::abort() noexcept {
  team_.member(0).abort();
  for (const auto& group : groups_) group[0]->abort();
}

}  // namespace dtrain
