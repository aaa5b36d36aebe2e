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
  size_t parameters = 0, slots = 0, gradients = 0, activations = 0, staging = 0, data = 0, metrics = 0,
         ahead = 0, copies = 0;

  void add(const MemoryPlan& plan) {
    parameters += plan.parameters;
    slots += plan.slots;
    gradients += plan.gradients;
    activations += plan.activations;
    staging += plan.staging;
    data += plan.data;
    metrics += plan.metrics;
  }
  size_t total() const {
    return parameters + slots + gradients + activations + staging + data + metrics + ahead + copies;
  }
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
                                      {metrics, "sums of metrics"},
                                      {ahead, "batches read ahead"},
                                      {copies, "copies on the host"}})
      if (bytes > 0) texts.push_back(fmt::format("{} of {}", format_bytes(bytes), what));
    return fmt::format("{}", fmt::join(texts, ", "));
  }
};

MemoryPlan Replicas::memory_of(Replica& replica, Plan::Purpose purpose, int64_t batch_size) {
  Worker& worker = replica.worker();
  MemoryPlan plan{.device = worker.context().device(), .replica = replica.rank()};
  plan.threads = worker.context().threads();
  plan.share = share_of(replica.rank(), batch_size).size();
  const bool training = purpose == Plan::Purpose::training;
  const Microbatches microbatches = microbatches_of(replica.rank(), batch_size);
  const GradientSync::StateBytes state = sync_->state_bytes(worker);
  plan.parameters = state.parameters;
  if (training) plan.slots = state.slots;
  if (training) plan.gradients = replica.gradient_bytes(microbatches.count());
  plan.metrics = replica.totals_bytes() + (worker.on_gpu() ? 0 : replica.host_totals_bytes());
  if (plan.share == 0) return plan;
  const int64_t most_rows = training ? microbatches[0].size() : plan.share;
  if (most_rows > 0) plan.activations = replica.plan({purpose, most_rows}).arena_bytes();
  if (training && config_.dataset.validation)
    plan.activations =
        std::max(plan.activations, replica.plan({Plan::Purpose::evaluation, plan.share}).arena_bytes());
  if (worker.on_gpu()) plan.staging = replica.staging_bytes({purpose, plan.share});
  if (worker.on_gpu()) plan.data = data_bytes_;
  return plan;
}

std::vector<MemoryPlan> Replicas::memory(Plan::Purpose purpose, int64_t batch_size) {
  batch_size = std::min(batch_size, most_samples_);
  std::vector<MemoryPlan> plans(replicas_.size());
  team_.run([&](Collective& member) {
    plans[static_cast<size_t>(member.rank())] = memory_of(replica_of(member), purpose, batch_size);
  });
  return plans;
}

const Plan& Replicas::training_plan(int64_t batch_size) {
  return replicas_[0]->plan(
      {Plan::Purpose::training, microbatches_of(0, std::min(batch_size, most_samples_))[0].size()});
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
  // Those of a batch, and of the epoch.
  on_host.metrics = 2 * totals_.sums.size() * sizeof(double);
  on_host.ahead = read_ahead_.bytes(std::min(batch_size, most_samples_));
  for (const MemoryPlan& plan : memory(purpose, batch_size))
    by_device[plan.device.kind == DeviceId::Kind::gpu ? plan.device.index : kHost].add(plan);
  for (const auto& replica : replicas_) {
    Worker& worker = replica->worker();
    if (!worker.on_gpu()) continue;
    on_host.metrics += replica->host_totals_bytes();
    Demand& demand = by_device[worker.context().device().index];
    demand.gpu = worker.context().device().index;
    demand.left = worker.context().free_bytes();
    demand.whose = "its free memory";
  }
  // What GPUs have is saved by way of the host. (A copy of what the host has itself is made, for saving, only
  // where there is room.)
  if (training && sync_->on_gpu()) on_host.copies = snapshot_bytes();
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

void Replicas::allocate(Plan::Purpose purpose, int64_t batch_size) {
  check_memory(purpose, batch_size);
  for (const auto& replica : replicas_) sync_->allocate_parameters(replica->worker());
  if (purpose != Plan::Purpose::training) return;
  team_.run([&](Collective& member) { sync_->allocate_slots(replica_of(member).worker()); });
  for (const Optimizer::Slot& slot : update_.slots()) state_.push_back({slot.name, layout_.trained(), {}});
}

}  // namespace dtrain
