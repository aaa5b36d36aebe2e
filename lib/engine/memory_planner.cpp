#include "engine/memory_planner.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "distribute/largest_batch.h"
#include "run/record/epoch_tables.h"

namespace dtrain {

MemoryPlanner::MemoryPlanner(const RunPlan& plan, SlotThreads& threads,
                             std::span<const std::unique_ptr<Replica>> replicas, const ModelState& state,
                             ModelState::RunOnSlots run, MicrobatchesOf microbatches)
    : config_(plan.config),
      placement_(plan.placement),
      threads_(threads),
      replicas_(replicas),
      state_(state),
      run_(std::move(run)),
      microbatches_of_(std::move(microbatches)) {}

MemoryPlan MemoryPlanner::plan_slot(int rank, int slot, Plan::Purpose purpose, int64_t batch_size) {
  Executor& its = executor(rank, slot);
  Worker& worker = its.worker();
  ReplicaPlans& plans = replicas_[static_cast<size_t>(rank)]->plans();
  MemoryPlan plan{.device = worker.context().device(), .replica = rank, .slot = slot};
  plan.threads = worker.context().threads();
  plan.share = microbatches_of_(rank, purpose, batch_size).share().size();
  const bool training = purpose == Plan::Purpose::training;
  const SlotState::Bytes state = its.state().bytes(worker);
  plan.parameters = state.parameters;
  if (training) plan.optimizer_slots = state.slots;
  if (training) plan.gradients = its.gradient_bytes() + state.gradients;
  plan.metrics = its.totals_bytes() + (worker.on_gpu() ? 0 : its.host_totals_bytes());
  if (plan.share == 0) return plan;
  // `tail`: size of the epoch's last batch if this batch is smaller than the others. 0 if all batches have
  // the same size, or if the number of samples is unknown.
  const bool is_known = data_.most_samples != std::numeric_limits<int64_t>::max();
  const int64_t tail = is_known ? data_.most_samples % batch_size : 0;
  std::vector<Plan::Purpose> purposes{purpose};
  if (training && config_.dataset.validation) purposes.push_back(Plan::Purpose::evaluation);
  for (const Plan::Purpose what : purposes) {
    const Microbatches microbatches = microbatches_of_(rank, what, batch_size);
    const int64_t rows = microbatches[0].size();
    if (rows == 0) continue;
    plan.microbatch = std::max(plan.microbatch, rows);
    // Smaller and shorter microbatches reuse the memory of the largest microbatch. But link buffers are
    // allocated for each size and length.
    std::set<int64_t> sizes{rows}, lengths{0};
    if (threads_.slots() > 1) lengths.insert(data_.lengths.begin(), data_.lengths.end());
    if (threads_.slots() > 1) sizes.merge(microbatches.sizes());
    if (threads_.slots() > 1 && tail > 0) sizes.merge(microbatches_of_(rank, what, tail).sizes());
    plan.activations =
        std::max(plan.activations, its.arena_bytes(what, sizes, lengths, microbatches.count()));
    plan.transfers += its.transfer_bytes(what, sizes, lengths);
    if (worker.on_gpu()) plan.staging = std::max(plan.staging, its.staging_bytes(plans.plan({what, rows})));
  }
  if (worker.on_gpu())
    plan.data = data_.on_gpu;
  else
    plan.activations += std::exchange(plan.transfers, 0);
  return plan;
}

std::vector<MemoryPlan> MemoryPlanner::plan(Plan::Purpose purpose, int64_t batch_size, int replicas) {
  std::vector<MemoryPlan> plans(
      threads_.index_of(std::min(replicas, threads_.replicas()), threads_.first_slot()));
  run_([&](int rank, int slot) {
    const size_t place = threads_.index_of(rank, slot);
    if (place < plans.size()) plans[place] = plan_slot(rank, slot, purpose, limited(batch_size));
  });
  return plans;
}

const Plan& MemoryPlanner::training_plan(int64_t batch_size) {
  const Microbatches microbatches = microbatches_of_(0, Plan::Purpose::training, limited(batch_size));
  // If the first replica of this process gets no rows, uses a plan for one row, which has the same warnings
  // and notes.
  return replicas_[0]->plans().plan({Plan::Purpose::training, std::max<int64_t>(microbatches[0].size(), 1)});
}

/// State on GPUs, and state that is stored in several parts, is copied to host memory before it is saved.
/// (State in host memory is also copied, but only if there is enough memory. For this reason, its copy is not
/// counted.)
size_t MemoryPlanner::copy_bytes() const {
  size_t bytes = state_.is_copied_for_saving() ? state_.snapshot_bytes() : 0;
  for (int slot = threads_.first_slot(); slot < threads_.end_slot(); ++slot)
    bytes += executor(0, slot).state().host_bytes();
  return bytes;
}

HostNeeds MemoryPlanner::host_needs(Plan::Purpose purpose, int64_t batch_size) const {
  const bool training = purpose == Plan::Purpose::training;
  HostNeeds needs{.data = data_.on_host, .read_ahead = data_.read_ahead.bytes(limited(batch_size))};
  // There are sums over a batch, over the epoch and, in training with validation, over the validation split.
  const size_t sums = training && config_.dataset.validation ? 3 : 2;
  const size_t by_replica = threads_.slots() > 1 ? replicas_.size() : 0;
  needs.metrics = (sums + by_replica) * count_totals(config_.graph, config_.heads) * sizeof(double);
  if (training) needs.metrics += table_bytes(config_).memory;
  if (training) needs.copies = copy_bytes();
  for (const auto& replica : replicas_)
    for (const auto& its : replica->executors())
      if (its->worker().on_gpu()) needs.metrics += its->host_totals_bytes();
  return needs;
}

std::vector<MemoryDemand> MemoryPlanner::demands(Plan::Purpose purpose, int64_t batch_size) {
  const HostMemory host = host_memory();
  std::map<int, FreeMemory> gpus;
  for (const auto& replica : replicas_)
    for (const auto& its : replica->executors())
      if (Context& context = its->worker().context(); its->worker().on_gpu())
        gpus[context.device().index] = {usable_gpu_bytes(context.free_bytes()), "its free memory"};
  return sum_demands(plan(purpose, batch_size), host_needs(purpose, batch_size), {host.left(), host.whose},
                     gpus);
}

std::string MemoryPlanner::most_of_it(const MemoryDemand& demand) const {
  if (threads_.slots() == 1 || !demand.largest) return "";
  std::string first;
  int others = -1;
  for (size_t i = 0; i < config_.graph.nodes.size(); ++i) {
    const GraphNode& node = config_.graph.nodes[i];
    if (!node.layer || node.is_activation_of_previous || placement_.slots[i] != demand.largest->slot)
      continue;
    if (++others == 0) first = node.name;
  }
  return fmt::format("; {} needs the most memory ({}), for '{}'{}", demand.largest->device.str(),
                     format_bytes(demand.largest->total()), first,
                     others == 0 ? "" : fmt::format(" and {} more layer{}", others, others == 1 ? "" : "s"));
}

void MemoryPlanner::check(Plan::Purpose purpose, int64_t batch_size) {
  batch_size = limited(batch_size);
  const std::vector<MemoryDemand> all = demands(purpose, batch_size);
  const MemoryDemand& demand = scarcest(all);
  if (demand.excess() <= 0) return;
  const int64_t most = largest_batch(
      [&](int64_t batch) { return scarcest(demands(purpose, batch)).excess(); }, batch_size, demand.excess());
  const bool training = purpose == Plan::Purpose::training;
  std::string what_fits = fmt::format("the largest batch that fits is {}", most);
  if (most == 0) {
    what_fits = "not even one sample fits";
    if (training) what_fits += "; `dtrain check --fit` shows strategies that may fit";
  }
  const std::string message =
      fmt::format("{}{}; {}", shortage(demand, batch_size), most_of_it(demand), what_fits);
  throw UserError(training ? located(config_.place({"train", "batch_size"}), message) : message);
}

std::string MemoryPlanner::advice(Plan::Purpose purpose, int64_t batch_size) {
  return host_advice(demands(purpose, batch_size).front(), host_memory().available);
}

}  // namespace dtrain
