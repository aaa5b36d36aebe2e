#include "engine/update/slot_state.h"

#include <algorithm>
#include <utility>

#include "engine/state/replicated_store.h"
#include "program/execute.h"

namespace dtrain {

namespace {

bool have_same_memory(std::span<Worker* const> workers) {
  const DeviceId first = workers[0]->context().device();
  return std::all_of(workers.begin(), workers.end(), [&](Worker* worker) {
    const DeviceId device = worker->context().device();
    return device == first || (device.kind == first.kind && first.kind == DeviceId::Kind::cpu);
  });
}

bool have_a_gpu_each(std::span<Worker* const> workers) {
  std::vector<int> seen;
  for (Worker* worker : workers) {
    if (!worker->on_gpu()) return false;
    seen.push_back(worker->context().device().index);
  }
  std::sort(seen.begin(), seen.end());
  return std::adjacent_find(seen.begin(), seen.end()) == seen.end();
}

}  // namespace

SlotState::Exchange SlotState::choose(const SlotStateRequest& request) {
  if (request.sharded != ShardLevel::none) return Exchange::sharded;
  const bool several = request.world.size() > 1;
  if (several && !request.workers[0]->on_gpu()) return Exchange::processes;
  if (several) return Exchange::nccl;
  if (request.workers.size() == 1 && !request.has_other_slots()) return Exchange::none;
  if (have_same_memory(request.workers)) return Exchange::shared_memory;
  return have_a_gpu_each(request.workers) && nccl_available() ? Exchange::nccl : Exchange::staged;
}

SlotState::SlotState(const SlotStateRequest& request)
    : request_(request),
      exchange_(choose(request_)),
      updating_(request_.workers),
      last_(request_.workers.size()) {
  if (exchange_ == Exchange::staged) make_host_workers();
  make_parts();
  if (exchange_ != Exchange::none) norm_.emplace(request_.model, request_.slot, updating_);
  for (size_t rank = 0; rank < updating_.size(); ++rank) {
    const bool records = rank == 0 || reducer_->reduction() != GradientReduction::all_reduce;
    updates_.emplace_back(WorkerUpdate::Parts{
        *request_.workers[rank], *updating_[rank], *request_.replicas[rank], *request_.everyone[rank],
        request_.has_other_slots() ? *request_.replicas[rank] : *request_.everyone[rank],
        request_.model.slots(), request_.update, *store_, *reducer_, norm_ ? &*norm_ : nullptr, last_,
        records});
    programs_.push_back(lower_update(update_request(static_cast<int>(rank))));
  }
}

void SlotState::make_host_workers() {
  const int core = available_cores().front();
  for (Worker*& worker : updating_) {
    if (!worker->on_gpu()) continue;
    host_workers_.push_back(std::make_unique<Worker>(worker->rank(), make_cpu_context({}, {core}, false),
                                                     GpuMath{}, request_.layout()));
    worker = host_workers_.back().get();
  }
}

void SlotState::make_parts() {
  const ParameterLayout& layout = request_.layout();
  const auto& slots = request_.update.slots();
  const std::span<Worker*const> workers = request_.workers, owners = updating_;
  const bool is_sharded = exchange_ == Exchange::sharded;
  const int sharers = is_sharded ? request_.ranks.total() : static_cast<int>(workers.size());
  const bool needs_whole_parameters =
      request_.update.needs_whole_parameters() ||
      (request_.sharded == ShardLevel::parameters && request_.update.weight_rules().need_whole_parameters());
  std::vector<Range> shares = layout.shares(sharers, needs_whole_parameters);
  if (is_sharded) {
    const auto first = shares.begin() + request_.ranks.first();
    std::vector<Range> own(first, first + static_cast<std::ptrdiff_t>(workers.size()));
    auto store = std::make_unique<ShardedStore>(layout, slots, workers, std::move(shares), request_.ranks,
                                                request_.sharded, request_.world);
    if (request_.world.size() == 1 || workers[0]->on_gpu())
      reducer_ = make_sharded_reducer(layout, *store, workers, request_.replicas, request_.sharded);
    else if (request_.sharded == ShardLevel::optimizer)
      reducer_ = make_process_reducer(over_processes(std::move(own), store.get()));
    else
      reducer_ = make_process_sharded_reducer(layout, *store, request_.replicas, request_.sharded);
    store_ = std::move(store);
    return;
  }
  store_ = std::make_unique<ReplicatedStore>(layout, slots, workers,
                                             exchange_ == Exchange::nccl ? owners : owners.first(1));
  switch (exchange_) {
    case Exchange::none:
      reducer_ = make_single_reducer(layout);
      break;
    case Exchange::shared_memory:
      reducer_ = make_shared_memory_reducer(std::move(shares), workers);
      break;
    case Exchange::processes:
      reducer_ = make_process_reducer(over_processes(std::move(shares), nullptr));
      break;
    case Exchange::nccl:
      reducer_ = make_nccl_reducer(layout, workers, request_.world, request_.trains);
      break;
    case Exchange::staged:
    case Exchange::sharded:
      reducer_ = make_staged_reducer(layout, std::move(shares), workers, owners);
      break;
  }
}

ProcessReducerRequest SlotState::over_processes(std::vector<Range> shares, const ShardedStore* store) const {
  return {.layout = request_.layout(),
          .slot = request_.slot,
          .workers = request_.workers,
          .shares = std::move(shares),
          .bucket = bucket_floats(),
          .totals = *request_.totals,
          .ranks = request_.ranks,
          .world = request_.world,
          .store = store};
}

UpdateRequest SlotState::update_request(int rank) const {
  const ParameterLayout& layout = request_.layout();
  const Update& update = request_.update;
  return {.slot = request_.slot,
          .reduction = reducer_->reduction(),
          .joins_backward = reducer_->reduction() == GradientReduction::in_backward &&
                            request_.world.size() > 1 && !request_.workers[0]->on_gpu(),
          .has_other_slots = request_.has_other_slots(),
          .gradients = layout.with_gradient(),
          .trained = layout.trained(),
          .share = reducer_->share_of(rank),
          .counts_share = counts_share(rank),
          .bucket = bucket_floats(),
          .needs_norm = update.needs_norm(),
          .has_row_weights = update.is_weighted(),
          .may_skip = update.gradient_rule().skips_unweighted,
          .needs_directions = update.needs_directions(),
          .has_penalties = update.weight_rules().has_penalties(),
          .penalties_read_all = update.weight_rules().penalties_read_all(),
          .has_constraints = update.weight_rules().has_constraints(),
          .updates_common_copy = exchange_ == Exchange::shared_memory || exchange_ == Exchange::staged ||
                                 exchange_ == Exchange::processes,
          .shares_memory = exchange_ == Exchange::shared_memory || exchange_ == Exchange::processes,
          .gathers_parameters =
              request_.sharded == ShardLevel::optimizer || request_.sharded == ShardLevel::gradients};
}

bool SlotState::counts_share(int rank) const {
  return reducer_->reduction() != GradientReduction::all_reduce || request_.ranks.first() + rank == 0;
}

int64_t SlotState::bucket_floats() const {
  return std::max<int64_t>(request_.bucket_bytes / static_cast<int64_t>(sizeof(float)), 1);
}

int64_t SlotState::overlapped_bucket() const {
  const GradientReduction reduction = reducer_->reduction();
  const bool overlaps =
      reduction == GradientReduction::all_reduce || reduction == GradientReduction::over_processes;
  return overlaps && !request_.has_other_slots() ? bucket_floats() : 0;
}

std::string SlotState::advice() const {
  if (exchange_ != Exchange::staged) return "";
  return nccl_available()
             ? "gradients are summed in the host's memory, which is slow; to use NCCL, "
               "give each replica its own GPU"
             : "gradients are summed in the host's memory, which is slow: NCCL was not found; run "
               "`dtrain gpus` to see the libraries that were found";
}

bool SlotState::runs_ahead() const {
  return store_->on_gpu() && programs_[0].on_host.empty();
}

SlotState::Bytes SlotState::bytes(const Worker& worker) const {
  const ParameterStore::Bytes bytes = store_->bytes(worker);
  return {.parameters = bytes.parameters + reducer_->staging_bytes(worker),
          .slots = bytes.slots,
          .gradients = reducer_->gradient_bytes(worker)};
}

void SlotState::allocate_parameters(Worker& worker) {
  store_->allocate_parameters(worker);
  reducer_->allocate_staging(worker);
}

void SlotState::allocate_slots(Worker& worker) {
  store_->allocate_slots(worker);
  reducer_->allocate_gradients(worker);
}

void SlotState::begin(Worker& worker, bool trains) {
  store_->load(worker);
  if (trains) reducer_->begin(worker);
}

void SlotState::add_penalties(Worker& worker, double* total) {
  if (!counts_share(worker.rank())) return;
  // Each process has all parameters. For this reason, the penalties are divided among the replicas of all
  // processes.
  const Range share = exchange_ == Exchange::processes
                          ? part_of(request_.layout().with_gradient(), request_.ranks.first() + worker.rank(),
                                    request_.ranks.total(), 16)
                          : reducer_->share_of(worker.rank());
  request_.update.weight_rules().add_penalties(worker.ops(), store_->memory_of(worker),
                                               request_.update.trained(share), total);
}

void SlotState::run(const std::vector<Instruction>& instructions, const Worker& worker) {
  ParameterUpdate& update = worker_update(worker.rank());
  for (const Instruction& instruction : instructions) execute(instruction, update);
}

}  // namespace dtrain
