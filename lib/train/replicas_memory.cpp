// What a run takes of each memory, and whether that is there.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.h"
#include "train/replica.h"
#include "train/replicas.h"

namespace dtrain {

/// The sums over the replicas that have this memory.
struct Replicas::Demand {
  std::optional<int> gpu;  // nothing: the host
  size_t left = 0;
  std::string whose;  // limit that is
  size_t parameters = 0, slots = 0, gradients = 0, activations = 0, staging = 0, data = 0, copies = 0;

  void add(const MemoryPlan& plan) {
    parameters += plan.parameters;
    slots += plan.slots;
    gradients += plan.gradients;
    activations += plan.activations;
    staging += plan.staging;
    data += plan.data;
  }
  size_t total() const { return parameters + slots + gradients + activations + staging + data + copies; }
  /// Bytes that are not there; negative where some are left.
  double excess() const { return static_cast<double>(total()) - static_cast<double>(left); }
  std::string name() const { return gpu ? fmt::format("gpu:{}", *gpu) : "cpu"; }
  /// "1.2 GB of parameters, 3.4 GB of activations".
  std::string parts() const {
    std::vector<std::string> texts;
    for (const auto& [bytes, what] : {std::pair{parameters, "parameters"},
                                      {slots, "the optimizer's slots"},
                                      {gradients, "gradients"},
                                      {activations, "activations"},
                                      {staging, "batches on their way"},
                                      {data, "samples"},
                                      {copies, "copies on the host"}})
      if (bytes > 0) texts.push_back(fmt::format("{} of {}", format_bytes(bytes), what));
    return fmt::format("{}", fmt::join(texts, ", "));
  }
};

MemoryPlan Replicas::memory_of(Replica& replica, Plan::Purpose purpose, int64_t batch_size) {
  MemoryPlan plan{.device = replica.context().device(), .replica = replica.rank()};
  plan.threads = replica.context().threads();
  plan.share = part_of(batch_size, replica.rank(), size()).size();
  const bool training = purpose == Plan::Purpose::training;
  const int64_t pieces = training ? std::min(config_.train.accumulate, plan.share) : 1;
  if (training) plan.gradients = replica.gradient_bytes(pieces);
  if (plan.share == 0) return plan;
  const int64_t piece = part_of(plan.share, 0, static_cast<int>(pieces)).size();
  plan.activations = replica.arena_bytes(piece, purpose);
  if (training && config_.dataset.validation)
    plan.activations = std::max(plan.activations, replica.arena_bytes(plan.share, Plan::Purpose::evaluation));
  if (replica.on_gpu()) plan.staging = replica.staging_bytes(plan.share, purpose);
  if (replica.on_gpu()) plan.data = data_bytes_;
  return plan;
}

std::vector<MemoryPlan> Replicas::memory(Plan::Purpose purpose, int64_t batch_size) {
  batch_size = std::min(batch_size, most_samples_);
  std::vector<MemoryPlan> plans(replicas_.size());
  team_.run([&](Collective& member) {
    const auto rank = static_cast<size_t>(member.rank());
    plans[rank] = memory_of(*replicas_[rank], purpose, batch_size);
  });
  // The parameters and slots of a memory stand once, with the first replica that has it.
  const auto trained_in = sync_->memories();
  std::vector<const ParameterMemory*> seen;
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    const ParameterMemory* memory = &sync_->memory_of(static_cast<int>(rank));
    if (std::find(seen.begin(), seen.end(), memory) != seen.end()) continue;
    seen.push_back(memory);
    plans[rank].parameters = memory->bytes();
    if (purpose == Plan::Purpose::training &&
        std::any_of(trained_in.begin(), trained_in.end(), [&](const auto& m) { return m.get() == memory; }))
      plans[rank].slots =
          config_.train.optimizer->slots().size() * static_cast<size_t>(layout_.trained()) * sizeof(float);
  }
  return plans;
}

/// The host first, then each GPU that has replicas.
std::vector<Replicas::Demand> Replicas::demands(Plan::Purpose purpose, int64_t batch_size) {
  const bool training = purpose == Plan::Purpose::training;
  constexpr int kHost = -1;
  const HostMemory host = host_memory();
  std::map<int, Demand> by_device;
  Demand& on_host = by_device[kHost];
  on_host.left = host.left();
  on_host.whose = host.whose;
  on_host.data = host_bytes_;
  for (const MemoryPlan& plan : memory(purpose, batch_size))
    by_device[plan.device.kind == DeviceId::Kind::gpu ? plan.device.index : kHost].add(plan);
  for (const auto& replica : replicas_) {
    if (!replica->on_gpu()) continue;
    Demand& demand = by_device[replica->context().device().index];
    demand.gpu = replica->context().device().index;
    demand.left = replica->context().free_bytes();
    demand.whose = "its free memory";
  }
  // What GPUs compute with is read and saved by way of the host. (A CPU's copy of it, for saving, is made
  // only where there is room.)
  const bool all_on_gpus =
      std::all_of(replicas_.begin(), replicas_.end(), [](const auto& replica) { return replica->on_gpu(); });
  if (all_on_gpus)
    on_host.copies = training ? snapshot_bytes() : static_cast<size_t>(layout_.size()) * sizeof(float);
  if (training) on_host.copies += sync_->host_bytes();
  std::vector<Demand> all;
  for (auto& [device, demand] : by_device) all.push_back(std::move(demand));
  return all;
}

/// The one that has least left beside what it must hold.
Replicas::Demand Replicas::scarcest(Plan::Purpose purpose, int64_t batch_size) {
  const std::vector<Demand> all = demands(purpose, batch_size);
  return *std::max_element(all.begin(), all.end(),
                           [](const Demand& a, const Demand& b) { return a.excess() < b.excess(); });
}

/// Between a batch that fits and one that does not: what is needed is nearly linear in the batch, so that a
/// straight line soon hits the place; halving now and then keeps it from crawling.
int64_t Replicas::largest_batch(Plan::Purpose purpose, int64_t fits, double room, int64_t does_not,
                                double excess) {
  for (int probe = 0; does_not - fits > 1; ++probe) {
    const double part = probe % 3 == 2 ? 0.5 : room / (room + excess);
    const auto step = static_cast<int64_t>(part * static_cast<double>(does_not - fits));
    const int64_t batch = std::clamp(fits + step, fits + 1, does_not - 1);
    const double found = scarcest(purpose, batch).excess();
    (found > 0 ? does_not : fits) = batch;
    (found > 0 ? excess : room) = std::abs(found);
  }
  return fits;
}

void Replicas::check_memory(Plan::Purpose purpose, int64_t batch_size) {
  batch_size = std::min(batch_size, most_samples_);
  const Demand demand = scarcest(purpose, batch_size);
  if (demand.excess() <= 0) return;
  const std::string why =
      fmt::format("{}: batches of {} need {} ({}), {} can be had there ({})", demand.name(), batch_size,
                  format_bytes(demand.total()), demand.parts(), format_bytes(demand.left), demand.whose);
  const double room = -scarcest(purpose, 1).excess();
  if (room < 0) throw UserError(fmt::format("{}; not even one sample fits", why));
  throw UserError(fmt::format("{}; the largest batch that fits is {}", why,
                              largest_batch(purpose, 1, room, batch_size, demand.excess())));
}

std::string Replicas::memory_advice(Plan::Purpose purpose, int64_t batch_size) {
  const Demand host = demands(purpose, std::min(batch_size, most_samples_)).front();
  const uint64_t available = host_memory().available;
  if (host.total() <= available || host.excess() > 0) return "";
  return fmt::format(
      "{}: {} are needed ({}), {} are free now: the run may be slow, or be ended by the system", host.name(),
      format_bytes(host.total()), host.parts(), format_bytes(available));
}

void Replicas::allocate_parameters(Plan::Purpose purpose, int64_t batch_size) {
  check_memory(purpose, batch_size);
  for (const auto& replica : replicas_) sync_->memory_of(replica->rank()).allocate(replica->ops());
  const auto memories = sync_->memories();
  for (size_t i = 0; i < memories.size(); ++i) memories[i]->allocate(sync_->owner_of(i).ops());
}

}  // namespace dtrain
