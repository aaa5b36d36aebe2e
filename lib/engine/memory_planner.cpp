// Computes the memory that a run needs and checks that it is available.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.h"
#include "distribute/largest_batch.h"
#include "engine/replica.h"
#include "engine/replicas.h"
#include "run/record/epoch_tables.h"

namespace dtrain {

/// Sums over the replicas that use this memory.
struct Replicas::Demand {
  std::optional<int> gpu;  // nullopt: the host
  size_t left = 0;
  std::string whose;  // where the limit `left` comes from
  size_t parameters = 0, optimizer_slots = 0, gradients = 0, activations = 0, staging = 0, data = 0,
         metrics = 0, ahead = 0, copies = 0;
  std::optional<MemoryPlan> largest = {};  // largest plan that was added

  void add(const MemoryPlan& plan) {
    if (!largest || plan.total() > largest->total()) largest = plan;
    parameters += plan.parameters;
    optimizer_slots += plan.optimizer_slots;
    gradients += plan.gradients;
    activations += plan.activations;
    staging += plan.staging;
    data += plan.data;
    metrics += plan.metrics;
  }
  size_t total() const {
    return parameters + optimizer_slots + gradients + activations + staging + data + metrics + ahead + copies;
  }
  /// Missing bytes; negative if memory is left.
  double excess() const { return static_cast<double>(total()) - static_cast<double>(left); }
  std::string name() const { return gpu ? fmt::format("gpu:{}", *gpu) : "cpu"; }
  /// Returns a text such as "1.2 GB of parameters, 3.4 GB of activations".
  std::string parts() const {
    std::vector<std::string> texts;
    for (const auto& [bytes, what] : {std::pair{parameters, "parameters"},
                                      {optimizer_slots, "the optimizer's slots"},
                                      {gradients, "gradients"},
                                      {activations, "activations"},
                                      {staging, "batches in transfer"},
                                      {data, "samples"},
                                      {metrics, "metrics"},
                                      {ahead, "batches read ahead"},
                                      {copies, "copies on the host"}})
      if (bytes > 0) texts.push_back(fmt::format("{} of {}", format_bytes(bytes), what));
    return fmt::format("{}", fmt::join(texts, ", "));
  }
};

MemoryPlan Replicas::memory_of(Executor& executor, Plan::Purpose purpose, int64_t batch_size) {
  Worker& worker = executor.worker();
  Replica& replica = *replicas_[static_cast<size_t>(worker.rank())];
  MemoryPlan plan{.device = worker.context().device(), .replica = worker.rank(), .slot = executor.slot()};
  plan.threads = worker.context().threads();
  plan.share = share_of(worker.rank(), batch_size).size();
  const bool training = purpose == Plan::Purpose::training;
  const GradientSync::StateBytes state = sync_of(executor).state_bytes(worker);
  plan.parameters = state.parameters;
  if (training) plan.optimizer_slots = state.slots;
  if (training) plan.gradients = executor.gradient_bytes() + state.gradients;
  plan.metrics = executor.totals_bytes() + (worker.on_gpu() ? 0 : executor.host_totals_bytes());
  if (plan.share == 0) return plan;
  // The epoch's last, smaller batch, if the number of samples is known.
  const bool is_known = most_samples_ != std::numeric_limits<int64_t>::max();
  const int64_t tail = is_known ? most_samples_ % batch_size : 0;
  std::vector<Plan::Purpose> purposes{purpose};
  if (training && config_.dataset.validation) purposes.push_back(Plan::Purpose::evaluation);
  for (const Plan::Purpose what : purposes) {
    const Microbatches microbatches = microbatches_of(worker.rank(), what, batch_size);
    const int64_t rows = microbatches[0].size();
    if (rows == 0) continue;
    plan.microbatch = std::max(plan.microbatch, rows);
    // Smaller microbatches reuse the memory of the largest one, except for link buffers.
    std::set<int64_t> sizes{rows};
    if (slots() > 1) sizes.merge(microbatches.sizes());
    if (slots() > 1 && tail > 0) sizes.merge(microbatches_of(worker.rank(), what, tail).sizes());
    plan.activations = std::max(plan.activations, executor.arena_bytes(what, sizes, microbatches.count()));
    if (worker.on_gpu())
      plan.staging = std::max(plan.staging, executor.staging_bytes(replica.plans().plan({what, rows})));
  }
  if (worker.on_gpu()) plan.data = data_bytes_;
  return plan;
}

std::vector<MemoryPlan> Replicas::memory(Plan::Purpose purpose, int64_t batch_size, int replicas) {
  batch_size = std::min(batch_size, most_samples_);
  std::vector<MemoryPlan> plans(static_cast<size_t>(std::min(replicas, size()) * slots()));
  run([&](Collective& member) {
    const auto place = static_cast<size_t>(member.rank());
    if (place < plans.size()) plans[place] = memory_of(executor_of(member), purpose, batch_size);
  });
  return plans;
}

std::vector<MemoryUse> Replicas::memory_use() const {
  std::vector<MemoryUse> uses;
  for (const auto& replica : replicas_)
    for (const auto& executor : replica->executors())
      uses.push_back(executor->worker().context().memory_use());
  return uses;
}

const Plan& Replicas::training_plan(int64_t batch_size) {
  const Microbatches microbatches =
      microbatches_of(0, Plan::Purpose::training, std::min(batch_size, most_samples_));
  return replicas_[0]->plans().plan({Plan::Purpose::training, microbatches[0].size()});
}

/// State on GPUs or in several pieces is copied to the host for saving. (State on the host is also copied for
/// saving, but only if there is memory for it; that is not counted.)
size_t Replicas::copy_bytes() const {
  const bool is_copied = slots() > 1 || placement_.sharded != ShardLevel::none || syncs_[0]->on_gpu();
  size_t bytes = is_copied ? snapshot_bytes() : 0;
  for (const auto& sync : syncs_) bytes += sync->host_bytes();
  return bytes;
}

/// Returns the host first, then each GPU that has replicas.
std::vector<Replicas::Demand> Replicas::demands(Plan::Purpose purpose, int64_t batch_size) {
  const bool training = purpose == Plan::Purpose::training;
  constexpr int kHost = -1;
  const HostMemory host = host_memory();
  std::map<int, Demand> by_device;
  Demand& on_host = by_device[kHost];
  on_host.left = host.left();
  on_host.whose = host.whose;
  on_host.data = host_bytes_;
  // Sums of a batch, of the epoch and, when training with validation, of the validation split.
  const size_t sums = training && config_.dataset.validation ? 3 : 2;
  on_host.metrics = sums * totals_.sums.size() * sizeof(double);
  if (training) on_host.metrics += table_bytes(config_).memory;
  on_host.ahead = read_ahead_.bytes(std::min(batch_size, most_samples_));
  for (const MemoryPlan& plan : memory(purpose, batch_size))
    by_device[plan.device.kind == DeviceId::Kind::gpu ? plan.device.index : kHost].add(plan);
  for (const auto& replica : replicas_)
    for (const auto& executor : replica->executors()) {
      Worker& worker = executor->worker();
      if (!worker.on_gpu()) continue;
      on_host.metrics += executor->host_totals_bytes();
      Demand& demand = by_device[worker.context().device().index];
      demand.gpu = worker.context().device().index;
      demand.left = usable_gpu_bytes(worker.context().free_bytes());
      demand.whose = "its free memory";
    }
  if (training) on_host.copies = copy_bytes();
  std::vector<Demand> all;
  for (auto& [device, demand] : by_device) all.push_back(std::move(demand));
  return all;
}

/// Returns the memory with the least bytes left after planned use.
Replicas::Demand Replicas::scarcest(Plan::Purpose purpose, int64_t batch_size) {
  const std::vector<Demand> all = demands(purpose, batch_size);
  return *std::max_element(all.begin(), all.end(),
                           [](const Demand& a, const Demand& b) { return a.excess() < b.excess(); });
}

/// Returns a text such as "; cpu:1 has most of it, 1.2 GB, with 'head' and 2 more layers" if replicas have
/// several devices.
std::string Replicas::most_of_it(const Demand& demand) const {
  if (slots() == 1 || !demand.largest) return "";
  std::string first;
  int others = -1;
  for (size_t i = 0; i < config_.graph.nodes.size(); ++i) {
    const GraphNode& node = config_.graph.nodes[i];
    if (!node.layer || node.is_activation_of_previous || placement_.slots[i] != demand.largest->slot)
      continue;
    if (++others == 0) first = node.name;
  }
  return fmt::format("; {} has most of it, {}, with '{}'{}", demand.largest->device.str(),
                     format_bytes(demand.largest->total()), first,
                     others == 0 ? "" : fmt::format(" and {} more layer{}", others, others == 1 ? "" : "s"));
}

void Replicas::check_memory(Plan::Purpose purpose, int64_t batch_size) {
  batch_size = std::min(batch_size, most_samples_);
  const Demand demand = scarcest(purpose, batch_size);
  if (demand.excess() <= 0) return;
  const std::string why = fmt::format("{}: batches of {} need {} ({}), but {} is available ({}){}",
                                      demand.name(), batch_size, format_bytes(demand.total()), demand.parts(),
                                      format_bytes(demand.left), demand.whose, most_of_it(demand));
  const int64_t most = largest_batch([&](int64_t batch) { return scarcest(purpose, batch).excess(); },
                                     batch_size, demand.excess());
  const bool training = purpose == Plan::Purpose::training;
  std::string what_fits = fmt::format("the largest batch that fits is {}", most);
  if (most == 0) {
    what_fits = "not even one sample fits";
    if (training) what_fits += " (`dtrain check --fit` shows strategies that may)";
  }
  const std::string message = fmt::format("{}; {}", why, what_fits);
  throw UserError(training ? located(config_.place({"train", "batch_size"}), message) : message);
}

std::string Replicas::memory_advice(Plan::Purpose purpose, int64_t batch_size) {
  const Demand host = demands(purpose, std::min(batch_size, most_samples_)).front();
  const uint64_t available = host_memory().available;
  if (host.total() <= available || host.excess() > 0) return "";
  return fmt::format(
      "{}: {} are needed ({}), but {} are free now: the run may be slow, or the system may end it",
      host.name(), format_bytes(host.total()), host.parts(), format_bytes(available));
}

void Replicas::allocate(Plan::Purpose purpose, int64_t batch_size) {
  check_memory(purpose, batch_size);
  for (const auto& replica : replicas_)
    for (const auto& executor : replica->executors())
      sync_of(*executor).allocate_parameters(executor->worker());
  if (purpose != Plan::Purpose::training) return;
  run([&](Collective& member) {
    Executor& executor = executor_of(member);
    sync_of(executor).allocate_slots(executor.worker());
  });
  for (const Optimizer::Slot& slot : update().slots()) state_.push_back({slot.name, layout().trained(), {}});
}

}  // namespace dtrain
