#include "engine/engine.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "device/peer_access.h"
#include "distribute/layer_times.h"
#include "engine/reading.h"
#include "nn/divisors.h"

namespace dtrain {

namespace {

bool has_gpu(const Placement& placement) {
  const auto is_gpu = [](const DeviceId& device) { return device.kind == DeviceId::Kind::gpu; };
  return std::any_of(placement.replicas.begin(), placement.replicas.end(), [&](const auto& devices) {
    return std::any_of(devices.begin(), devices.end(), is_gpu);
  });
}

Update::Options update_options_of(const RunConfig& config) {
  const TrainOptions& train = config.train;
  const auto has_mask = [](const Head& head) { return head.mask.has_value(); };
  Update::Options options;
  options.gradient_rule = {
      .clip_norm = static_cast<float>(train.clip_norm.value_or(0)),
      .dynamic_scaling = train.precision == Precision::mixed_float16,
      .is_weighted = config.heads[0].is_weighted() && !needs_divisors(config.graph, config.heads),
      .skips_unweighted = std::all_of(config.heads.begin(), config.heads.end(), has_mask)};
  options.clip_value = static_cast<float>(train.clip_value.value_or(INFINITY));
  for (const Configured<Callback>& callback : train.callbacks)
    if (const auto decay = callback->average_decay()) options.average_decay = static_cast<float>(*decay);
  return options;
}

std::deque<Update> make_updates(const RunConfig& config, const ModelLayout& layout) {
  std::deque<Update> updates;
  for (int slot = 0; slot < layout.slots(); ++slot)
    updates.emplace_back(layout.on(slot), config.train.optimizer.value.get(), update_options_of(config));
  return updates;
}

std::unique_ptr<ProcessTotals> make_process_totals(const RunPlan& plan, int slots) {
  if (plan.world_of_replicas().size() == 1) return nullptr;
  const auto totals = static_cast<int64_t>(count_totals(plan.config.graph, plan.config.heads));
  return std::make_unique<ProcessTotals>(plan.ranks, slots, std::max<int64_t>(totals, 1), plan.world);
}

/// Limits the time in which NCCL connects the GPUs, because connecting may take forever.
void limit_connecting(const RunPlan& plan, ExitDeadline& deadline) {
  World& world = plan.world_of_replicas();
  if (world.size() > 1) world.any(false);  // waits for all processes, so that the limit excludes this time
  const std::chrono::duration<double> limit =
      std::max(connection_limit(), Watchdog::Seconds(plan.config.train.step_timeout.seconds()));
  deadline.arm(world.end_with_error(
      fmt::format("NCCL did not connect the GPUs within {:g} seconds. Set NCCL_DEBUG=INFO in the environment "
                  "to see what NCCL does. If GPUs report access to each other's memory but do not have it, "
                  "set NCCL_P2P_DISABLE=1",
                  limit.count()),
      limit));
}

/// Returns how the process ends if GPUs or NCCL do not return when they are released.
ExitDeadline::Ending end_without_release(const World& world, bool is_saved) {
  const std::string text =
      fmt::format("releasing the GPUs did not finish within {:g} seconds; ending the process\n",
                  connection_limit().count());
  if (!is_saved) return {.message = "error: " + text, .limit = connection_limit()};
  return {.message = world.rank() == 0 ? "warning: all results are saved, but " + text : "",
          .limit = connection_limit(),
          .exit_code = 0};
}

std::vector<std::unique_ptr<SlotState>> make_slots(const RunPlan& plan, const ModelLayout& layout,
                                                   SlotThreads& threads, const std::deque<Update>& updates,
                                                   ProcessTotals* totals, bool trains) {
  const bool is_sharded = plan.placement.sharded != ShardLevel::none, on_gpu = has_gpu(plan.placement);
  ExitDeadline deadline;
  if (on_gpu && (trains || is_sharded) && threads.replicas() * plan.world_of_replicas().size() > 1)
    limit_connecting(plan, deadline);
  std::vector<std::unique_ptr<SlotState>> slots;
  for (int slot = threads.first_slot(); slot < threads.end_slot(); ++slot) {
    SlotStateRequest request{.model = layout,
                             .slot = slot,
                             .update = updates[static_cast<size_t>(slot)],
                             .sharded = plan.placement.sharded,
                             .trains = trains,
                             .totals = totals,
                             .bucket_bytes = plan.config.strategy->bucket_bytes(),
                             .ranks = plan.ranks,
                             .world = plan.world_of_replicas()};
    const bool over_processes = is_sharded || on_gpu || plan.has_divided_replicas();
    for (int rank = 0; rank < threads.replicas(); ++rank) {
      request.workers.push_back(&threads.worker(rank, slot));
      request.replicas.push_back(is_sharded && on_gpu ? &threads.replicas_of_all(rank, slot)
                                                      : &threads.replicas_of(rank, slot));
      request.everyone.push_back(over_processes ? &threads.waiting_slots(rank, slot)
                                                : &threads.everyone(rank, slot));
    }
    slots.push_back(std::make_unique<SlotState>(request));
  }
  return slots;
}

std::vector<std::unique_ptr<Replica>> make_replicas(const RunPlan& plan, const ModelLayout& layout,
                                                    SlotThreads& threads,
                                                    std::span<const std::unique_ptr<SlotState>> slots) {
  const ReplicaPlans::Options options{
      .spin = threads.spin(),
      .accumulates = plan.placement.microbatches > 1 || plan.config.train.accumulate > 1,
      .all_reduce_bucket = slots[0]->overlapped_bucket(),
      .all_reduces_row_weights = slots[0]->update().is_weighted() &&
                                 slots[0]->reducer().reduction() == GradientReduction::all_reduce};
  std::vector<std::unique_ptr<Replica>> replicas;
  for (int rank = 0; rank < threads.replicas(); ++rank)
    replicas.push_back(std::make_unique<Replica>(plan, layout, threads, slots, rank, options));
  return replicas;
}

}  // namespace

Microbatches microbatches_of(const RunPlan& plan, int rank, Plan::Purpose purpose, int64_t batch_size) {
  const bool training = purpose == Plan::Purpose::training, alone = purpose == Plan::Purpose::prediction;
  const int64_t most = plan.placement.microbatches * (training ? plan.config.train.accumulate : 1);
  // If there is only one replica, the order of the two divisions makes no difference, so the graph is not
  // searched for synchronized layers.
  const bool together =
      training && plan.ranks.total() > 1 &&
      (plan.config.graph.is_synchronized() || plan.placement.sharded >= ShardLevel::gradients);
  return {batch_size, most, alone ? rank : plan.ranks.first() + rank,
          alone ? plan.ranks.local() : plan.ranks.total(), together};
}

Engine::Engine(const RunPlan& plan, bool trains)
    : plan_(plan),
      world_(plan.world),
      layout_(plan.config.graph, plan.placement.slots,
              static_cast<int>(plan.placement.replicas.at(0).size())),
      threads_(plan, layout_),
      process_totals_(make_process_totals(plan, layout_.slots())),
      updates_(make_updates(plan.config, layout_)),
      slots_(make_slots(plan, layout_, threads_, updates_, process_totals_.get(), trains)),
      replicas_(make_replicas(plan, layout_, threads_, slots_)),
      state_(layout_, threads_, updates_, slots_, plan, [this](const SlotWork& work) { run(work); }),
      replica_totals_(plan, replicas_, count_totals(plan.config.graph, plan.config.heads)),
      memory_(
          plan, threads_, replicas_, state_, [this](const SlotWork& work) { run(work); },
          [this](int rank, Plan::Purpose purpose, int64_t batch_size) {
            return microbatches_of(plan_, rank, purpose, batch_size);
          }),
      step_weights_(plan.config) {
  threads_.on_abort([this] {
    try {
      throw;
    } catch (const ReadErrorOf<UserError>& error) {
      abort_all(error.what(), true);
    } catch (const ReadErrorOf<Error>& error) {
      abort_all(error.what(), false);
    } catch (const std::exception& error) {
      give_up(error.what());
    }
  });
  totals_.sums.resize(replica_totals_.count());
  if (updates_[0].gradient_rule().dynamic_scaling)
    state_.set_gradient_scale(
        {.loss_scale = GradientRule::kFirstLossScale, .gradient_scale = 1 / GradientRule::kFirstLossScale});
  if (has_gpu(plan_.placement))
    watch_devices();  // also detects failures of other processes
  else
    watch_processes();
}

Engine::~Engine() {
  try {
    if (watchdog_) watchdog_->ask();
    if (watchdog_ && aborted_) deadline_.arm("the GPUs do not respond after an error");
    if (watchdog_) deadline_.arm(end_without_release(world_, saved_ && std::uncaught_exceptions() == 0));
  } catch (const std::exception&) {  // the run is already ending with this error or an earlier one
  }
  world_.release();  // after a failure of another process, exchanges may still use the memory of the slots
}

void Engine::allocate(Plan::Purpose purpose, int64_t batch_size) {
  memory_.check(purpose, batch_size);
  state_.allocate_parameters();
  if (purpose == Plan::Purpose::training) state_.allocate_slots();
}

void Engine::initialize() {
  state_.initialize(plan_.config.graph, static_cast<uint64_t>(plan_.config.seed));
}

void Engine::set_slots_since(const std::map<std::string, int64_t>& since) {
  for (Update& update : updates_) update.set_slots_since(since);
}

void Engine::watch_devices() {
  watchdog_ = std::make_unique<Watchdog>(
      Watchdog::Seconds(plan_.config.train.step_timeout.seconds()),
      Watchdog::Run{[this] { return find_failure(); }, [this] { return describe_stall(); },
                    [this](const std::string& why) { give_up(why); }});
  for (const auto& replica : replicas_) {
    replica->plans().set_watchdog(watchdog_.get());
    for (const auto& executor : replica->executors()) executor->set_watchdog(watchdog_.get());
  }
}

void Engine::watch_processes() {
  world_.set_hang_limit(plan_.config.train.peer_timeout.seconds());
  for (const auto& replica : replicas_)
    for (const auto& executor : replica->executors()) executor->set_world(world_);
}

std::string Engine::find_failure() {
  for (const auto& replica : replicas_)
    for (const auto& executor : replica->executors())
      if (std::string found = executor->failure(); !found.empty()) return found;
  for (const auto& slot : slots_)
    if (std::string found = slot->reducer().failure(); !found.empty()) return found;
  return world_.failure();
}

/// Returns the error message for a stalled step. The message names the devices that have not enqueued the
/// step yet, because the other devices are waiting for them. If all devices have enqueued the step, any
/// device may be the cause, so the message names all devices.
std::string Engine::describe_stall() const {
  std::vector<std::string> late, all;
  for (const auto& replica : replicas_)
    for (const auto& executor : replica->executors()) {
      all.push_back(executor->worker().context().device().str());
      if (!executor->launched()) late.push_back(all.back());
    }
  return fmt::format(
      "{}: no progress for {} at step {} (limit: train.step_timeout). {}",
      fmt::join(late.empty() ? all : late, ", "), plan_.config.train.step_timeout.str(), step_.load(),
      all.size() > 1
          ? "CUDA graphs on several GPUs of one process can deadlock; set DTRAIN_CUDA_GRAPHS=0 in the "
            "environment to run without CUDA graphs, which is slower. If GPUs report access to each other's "
            "memory but do not have it, set NCCL_P2P_DISABLE=1. Set NCCL_DEBUG=INFO to see what NCCL does"
          : "Run dmesg to see whether the driver has found an error (Xid). If steps take longer than this "
            "limit, increase train.step_timeout");
}

void Engine::abort_all(const std::string& why, bool is_user_error) noexcept {
  aborted_ = true;
  threads_.abort();
  for (const auto& slot : slots_) slot->reducer().abort();
  for (const auto& replica : replicas_) replica->plans().abort();
  world_.abort(why, is_user_error);
}

void Engine::give_up(const std::string& why) noexcept {
  if (has_gpu(plan_.placement)) deadline_.arm(why);
  abort_all(why, false);
}

void Engine::run(const SlotWork& work) {
  const auto waiting = Watchdog::waiting(watchdog_.get());
  try {
    threads_.run(work);
  } catch (const ReadError&) {
    throw;
  } catch (...) {
    if (watchdog_) watchdog_->ask();
    throw;
  }
  if (watchdog_) watchdog_->check();
}

/// Runs a step and updates intact_. If samples cannot be read, or if another process fails, the state usually
/// remains intact, because no replica has updated its parameters yet. There is one exception. If there are
/// several replicas, and devices update the parameters without waiting for the host or for the slots of other
/// processes, the devices may have used an incomplete reduction. In this case, the state is not intact.
void Engine::run_step(Plan::Purpose purpose, const SlotWork& work) {
  const auto note_unfinished = [&] {
    const bool on_devices =
        slots_[0]->runs_ahead() || (world_.size() > 1 && threads_.slots() > 1 && has_gpu(plan_.placement));
    const bool updates = purpose == Plan::Purpose::training && plan_.ranks.total() > 1 && on_devices;
    intact_ = intact_ && !updates;
  };
  try {
    run(work);
  } catch (const ReadError&) {
    note_unfinished();
    throw;
  } catch (const ProcessFailed&) {
    note_unfinished();
    throw;
  } catch (...) {
    intact_ = false;
    throw;
  }
}

void Engine::launch(const Batch& batch, int64_t step, double learning_rate) {
  step_ = step + 1;
  StepRequest request{batch, static_cast<uint64_t>(plan_.config.seed),
                      plan_.config.train.optimizer->numbers(step, learning_rate)};
  step_weights_.set(request);
  request.numbers.first = batch.source().first;
  run_step(Plan::Purpose::training, [&](int rank, int slot) {
    executor(rank, slot).train(request, microbatches_of(plan_, rank, Plan::Purpose::training, batch.size()));
  });
  pending_.push_back(batch.size());
}

const BatchTotals& Engine::finish() {
  const int back = pending() - 1;
  const int64_t samples = pending_.front();
  pending_.pop_front();
  return collect(Plan::Purpose::training, samples, back);
}

const BatchTotals& Engine::evaluate(const Batch& batch) {
  run_step(Plan::Purpose::evaluation, [&](int rank, int slot) {
    executor(rank, slot)
        .evaluate(batch, microbatches_of(plan_, rank, Plan::Purpose::evaluation, batch.size()));
  });
  return collect(Plan::Purpose::evaluation, batch.size(), 0);
}

void Engine::predict(const Batch& batch, std::span<const View> outputs) {
  run([&](int rank, int slot) {
    executor(rank, slot)
        .predict(batch, microbatches_of(plan_, rank, Plan::Purpose::prediction, batch.size()), outputs);
  });
}

/// Sums the totals of all replicas. If a replica fails to deliver its totals, ends the run, so that the
/// devices of the other replicas do not wait for this replica.
const BatchTotals& Engine::collect(Plan::Purpose purpose, int64_t samples, int back) try {
  const auto waiting = Watchdog::waiting(watchdog_.get());
  totals_.samples = samples;
  const std::vector<const double*> totals = replica_totals_.read(back);
  if (watchdog_) watchdog_->check();
  for (const auto& slot : slots_) slot->reducer().check();
  const std::span<const double> summed = slots_[0]->reducer().summed_totals();
  if (purpose == Plan::Purpose::training && !summed.empty())
    std::copy_n(summed.begin(), totals_.sums.size(), totals_.sums.begin());
  else
    plan_.world_of_replicas().sum(plan_.ranks, totals, totals_.sums);
  if (plan_.config.graph.has_penalties()) totals_.sums.back() *= static_cast<double>(samples);
  return totals_;
} catch (const std::exception& error) {
  const bool by_other = dynamic_cast<const ProcessFailed*>(&error) != nullptr;
  intact_ = intact_ && by_other && purpose == Plan::Purpose::evaluation;
  give_up(error.what());
  if (watchdog_) watchdog_->ask();  // if a device has failed, throws its error, because it may be the cause
  throw;
}

std::vector<std::string> Engine::advice() const {
  std::vector<std::string> all = peer_access_notes();
  for (const auto& slot : slots_)
    if (const std::string advice = slot->advice();
        !advice.empty() && std::find(all.begin(), all.end(), advice) == all.end())
      all.push_back(advice);
  if (size() > 1 && has_gpu(plan_.placement) && plan_.config.graph.is_synchronized())
    all.push_back(
        "synchronized batch normalization exchanges statistics through the host's memory. This is slow, "
        "because GPUs wait for the host twice per layer and step");
  return all;
}

/// Returns one message only, because the messages of all devices usually have the same cause.
std::string Engine::take_advice() {
  std::string first;
  for (const auto& replica : replicas_)
    for (const auto& executor : replica->executors())
      if (std::string advice = executor->take_advice(); first.empty()) first = std::move(advice);
  return first;
}

std::vector<MemoryUse> Engine::memory_use() const {
  std::vector<MemoryUse> uses;
  for (int rank = 0; rank < threads_.replicas(); ++rank)
    for (int slot = threads_.first_slot(); slot < threads_.end_slot(); ++slot)
      uses.push_back(threads_.worker(rank, slot).context().memory_use());
  return uses;
}

std::vector<std::vector<double>> Engine::measure_layers(int64_t samples, double most_seconds) {
  std::vector<std::vector<double>> seconds(static_cast<size_t>(threads_.slots()));
  threads_.run([&](int rank, int slot) {
    if (rank == 0)
      seconds[static_cast<size_t>(slot)] =
          measure_layer_seconds(plan_.config.graph, samples, threads_.worker(rank, slot).ops(), most_seconds);
  });
  for (int slot = 0; slot < threads_.slots(); ++slot)
    if (slot < threads_.first_slot() || slot >= threads_.end_slot())
      seconds[static_cast<size_t>(slot)] = seconds[static_cast<size_t>(threads_.first_slot())];
  return seconds;
}

}  // namespace dtrain
