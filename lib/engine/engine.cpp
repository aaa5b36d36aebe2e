#include "engine/replicas.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "device/peer_access.h"
#include "distribute/layer_times.h"
#include "engine/reading.h"

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

int count_slots(const Placement& placement) {
  return static_cast<int>(placement.replicas.at(0).size());
}

int count_threads(const Placement& placement) {
  return static_cast<int>(placement.replicas.size()) * count_slots(placement);
}

bool has_gpu(const Placement& placement) {
  const std::vector<DeviceId> devices = placement.devices();
  return std::any_of(devices.begin(), devices.end(),
                     [](const DeviceId& device) { return device.kind == DeviceId::Kind::gpu; });
}

Update::Options update_options_of(const RunConfig& config) {
  const TrainOptions& train = config.train;
  const auto& weights = config.heads[0].weights;
  Update::Options options;
  options.gradient_rule = {
      .clip_norm = static_cast<float>(train.clip_norm.value_or(0)),
      .dynamic_scaling = train.precision == Precision::mixed_float16,
      .weights_per_sample = weights ? static_cast<float>(weights->shape.elements()) : 0.0f};
  options.clip_value = static_cast<float>(train.clip_value.value_or(INFINITY));
  for (const Configured<Callback>& callback : train.callbacks)
    if (const auto decay = callback->average_decay()) options.average_decay = static_cast<float>(*decay);
  return options;
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

Replicas::Replicas(const RunPlan& plan)
    : config_(plan.config),
      placement_(plan.placement),
      on_gpu_(has_gpu(placement_)),
      world_(plan.world),
      ranks_(world_.local_ranks(static_cast<int>(placement_.replicas.size()))),
      layout_(config_.graph, placement_.slots, count_slots(placement_)),
      spin_(static_cast<size_t>(count_threads(placement_)) <= available_cores().size()),
      team_(count_threads(placement_), spin_) {
  if (ranks_.total != static_cast<int>(placement_.replicas.size()) && config_.graph.is_synchronized())
    throw std::logic_error("synchronized layers are not supported over several processes yet");
  for (int slot = 0; slot < slots(); ++slot)
    updates_.emplace_back(layout_.on(slot), config_.train.optimizer.value.get(), update_options_of(config_));
  make_groups();
  lay_replicas();
  team_.run([&](Collective& member) { executor_of(member).worker().context().attach(); });
  make_syncs();
  team_.on_abort([this] {
    try {
      throw;
    } catch (const ReadError&) {
      abort_all();
    } catch (const std::exception& error) {
      give_up(error.what());
    }
  });
  state_.push_back({std::string(kParameters), layout().size(), {}});
  totals_.sums.resize(count_totals(config_.heads));
  if (update().gradient_rule().dynamic_scaling)
    set_gradient_scale(
        {.loss_scale = GradientRule::kFirstLossScale, .gradient_scale = 1 / GradientRule::kFirstLossScale});
  if (on_gpu_) watch_devices();
}

/// Creates a communicator per slot. With one slot, the team itself is used.
void Replicas::make_groups() {
  if (slots() == 1) return;
  for (int slot = 0; slot < slots(); ++slot)
    groups_.push_back(make_local_group(static_cast<int>(placement_.replicas.size()), spin_));
}

void Replicas::lay_replicas() {
  const auto cores = share_cores(team_.size(), available_cores());
  const bool accumulates = placement_.microbatches > 1 || config_.train.accumulate > 1;
  int thread = 0;
  for (size_t rank = 0; rank < placement_.replicas.size(); ++rank) {
    std::vector<SlotRequest> requests;
    for (int slot = 0; slot < slots(); ++slot, ++thread) {
      const DeviceId device = placement_.replicas[rank][static_cast<size_t>(slot)];
      Collective* everyone = &team_.member(thread);
      requests.push_back({std::make_unique<Worker>(
                              static_cast<int>(rank),
                              make_context(device, cores[static_cast<size_t>(thread)], spin_, config_.train),
                              gpu_math(config_.train), layout_.on(slot)),
                          groups_.empty() ? everyone : groups_[static_cast<size_t>(slot)][rank].get(),
                          everyone});
    }
    replicas_.push_back(std::make_unique<Replica>(config_.graph, layout_, config_.heads, placement_,
                                                  std::move(requests), spin_, accumulates));
  }
}

void Replicas::make_syncs() {
  for (int slot = 0; slot < slots(); ++slot) {
    std::vector<Worker*> workers;
    std::vector<Collective*> members;
    for (const auto& replica : replicas_) {
      workers.push_back(&replica->executor(slot).worker());
      members.push_back(&replica->executor(slot).member());
    }
    syncs_.push_back(make_gradient_sync({workers, members, layout_, slot, updates_[static_cast<size_t>(slot)],
                                         placement_.sharded, config_.strategy->bucket_bytes(), world_}));
  }
}

Executor& Replicas::executor_of(const Collective& member) {
  return replicas_[static_cast<size_t>(member.rank() / slots())]->executor(member.rank() % slots());
}

Replicas::~Replicas() {
  try {
    if (watchdog_) watchdog_->ask();
    if (watchdog_ && aborted_) deadline_.arm("the GPUs do not return after an error");
  } catch (const Error&) {  // already reported, and the deadline is running
  }
  // Captured graphs call the communicator, so they must be destroyed first.
  for (const auto& replica : replicas_)
    for (const auto& executor : replica->executors()) executor->forget_captured_graphs();
}

Range Replicas::share_of(int rank, int64_t batch_size) const {
  return part_of(batch_size, ranks_.first + rank, ranks_.total);
}

Microbatches Replicas::microbatches_of(int rank, Plan::Purpose purpose, int64_t batch_size) const {
  const bool training = purpose == Plan::Purpose::training;
  const int64_t most = placement_.microbatches * (training ? config_.train.accumulate : 1);
  return {batch_size, most, ranks_.first + rank, ranks_.total,
          training && (config_.graph.is_synchronized() || placement_.sharded >= ShardLevel::gradients)};
}

void Replicas::watch_devices() {
  watchdog_ = std::make_unique<Watchdog>(
      Watchdog::Seconds(config_.train.step_timeout.seconds()),
      Watchdog::Run{[this] { return find_failure(); }, [this] { return describe_stall(); },
                    [this](const std::string& why) { give_up(why); }});
  for (const auto& replica : replicas_) {
    replica->plans().set_watchdog(watchdog_.get());
    for (const auto& executor : replica->executors()) executor->set_watchdog(watchdog_.get());
  }
}

std::string Replicas::find_failure() {
  for (const auto& replica : replicas_)
    for (const auto& executor : replica->executors())
      if (std::string found = executor->worker().context().failure(); !found.empty()) return found;
  for (const auto& sync : syncs_)
    if (std::string found = sync->failure(); !found.empty()) return found;
  return "";
}

/// Names the slots that have not enqueued the step, because the others wait for them. If all have, any may be
/// the cause.
std::string Replicas::describe_stall() const {
  std::vector<std::string> late, all;
  for (const auto& replica : replicas_)
    for (const auto& executor : replica->executors()) {
      all.push_back(executor->worker().context().device().str());
      if (!executor->launched()) late.push_back(all.back());
    }
  return fmt::format(
      "{}: no progress for {} at step {} (train.step_timeout). {}",
      fmt::join(late.empty() ? all : late, ", "), config_.train.step_timeout.str(), step_.load(),
      all.size() > 1
          ? "Captured steps of several GPUs of one process can deadlock: set DTRAIN_CUDA_GRAPHS=0 in the "
            "environment to run without CUDA graphs, more slowly. NCCL_P2P_DISABLE=1 helps if GPUs report "
            "access to each other's memory but do not have it, and NCCL_DEBUG=INFO shows what NCCL does"
          : "dmesg shows whether the driver has found an error (Xid); if steps take longer than that, "
            "increase train.step_timeout");
}

void Replicas::abort_all() noexcept {
  aborted_ = true;
  team_.member(0).abort();
  for (const auto& sync : syncs_) sync->abort();
  for (const auto& group : groups_) group[0]->abort();
  for (const auto& replica : replicas_) replica->plans().abort();
  world_.abort();
}

void Replicas::give_up(const std::string& why) noexcept {
  if (on_gpu_) deadline_.arm(why);
  abort_all();
}

int Replicas::most_pending() const {
  return syncs_[0]->runs_ahead() ? 1 : 0;
}

void Replicas::run(const std::function<void(Collective&)>& work) {
  const auto waiting = Watchdog::waiting(watchdog_.get());
  try {
    team_.run(work);
  } catch (const ReadError&) {
    throw;
  } catch (...) {
    if (watchdog_) watchdog_->ask();
    throw;
  }
  if (watchdog_) watchdog_->check();
}

/// run(), which also updates intact_. If reading samples fails, no replica has updated its parameters, unless
/// devices update without the host, after a reduction that was cut short.
void Replicas::run_step(Plan::Purpose purpose, int64_t batch_size, const StepWork& work) {
  try {
    run([&](Collective& member) {
      Executor& executor = executor_of(member);
      work(executor, microbatches_of(executor.worker().rank(), purpose, batch_size), sync_of(executor));
    });
  } catch (const ReadError&) {
    const bool updates = purpose == Plan::Purpose::training && size() > 1 && syncs_[0]->runs_ahead();
    intact_ = intact_ && !updates;
    throw;
  } catch (...) {
    intact_ = false;
    throw;
  }
}

void Replicas::launch(const Batch& batch, int64_t step, double learning_rate) {
  step_ = step + 1;
  StepOrder order{batch, static_cast<uint64_t>(config_.seed),
                  config_.train.optimizer->numbers(step, learning_rate)};
  order.numbers.samples = static_cast<float>(batch.size());
  order.numbers.first = batch.source().first;
  run_step(Plan::Purpose::training, batch.size(),
           [&](Executor& executor, const Microbatches& microbatches, GradientSync& sync) {
             executor.train(order, microbatches, sync);
           });
  pending_.push_back(batch.size());
}

const BatchTotals& Replicas::finish() {
  const int back = pending() - 1;
  const int64_t samples = pending_.front();
  pending_.pop_front();
  return collect(samples, back);
}

const BatchTotals& Replicas::evaluate(const Batch& batch) {
  run_step(Plan::Purpose::evaluation, batch.size(),
           [&](Executor& executor, const Microbatches& microbatches, GradientSync& sync) {
             executor.evaluate(batch, microbatches, sync);
           });
  return collect(batch.size(), 0);
}

void Replicas::predict(const Batch& batch, std::span<const View> outputs) {
  run([&](Collective& member) {
    Executor& executor = executor_of(member);
    executor.predict(batch,
                     microbatches_of(executor.worker().rank(), Plan::Purpose::prediction, batch.size()),
                     sync_of(executor), outputs);
  });
}

/// Sums the replicas' totals in rank order. If a replica fails to deliver its totals, the other replicas'
/// devices are released.
const BatchTotals& Replicas::collect(int64_t samples, int back) try {
  const auto waiting = Watchdog::waiting(watchdog_.get());
  totals_.samples = samples;
  std::fill(totals_.sums.begin(), totals_.sums.end(), 0.0);
  for (const auto& replica : replicas_)
    for (const auto& executor : replica->executors()) {
      const std::span<const double> totals = executor->totals(back);
      for (size_t i = 0; i < totals_.sums.size(); ++i) totals_.sums[i] += totals[i];
    }
  if (watchdog_) watchdog_->check();
  for (const auto& sync : syncs_) sync->check();
  world_.all_reduce(totals_.sums);
  return totals_;
} catch (const std::exception& error) {
  intact_ = false;
  give_up(error.what());
  if (watchdog_) watchdog_->ask();  // the error may be a consequence of a failure that the watchdog knows
  throw;
}

std::vector<std::string> Replicas::advice() const {
  std::vector<std::string> all = peer_access_notes();
  for (const auto& sync : syncs_)
    if (const std::string advice = sync->advice();
        !advice.empty() && std::find(all.begin(), all.end(), advice) == all.end())
      all.push_back(advice);
  if (size() > 1 && on_gpu_ && config_.graph.is_synchronized())
    all.push_back(
        "synchronized batch normalization exchanges statistics in the host's memory, which is slow: GPUs "
        "wait for the host twice per layer and step");
  return all;
}

/// Returns one message only, because all devices usually have the same cause.
std::string Replicas::take_advice() {
  std::string first;
  for (const auto& replica : replicas_)
    for (const auto& executor : replica->executors())
      if (std::string advice = executor->take_advice(); first.empty()) first = std::move(advice);
  return first;
}

std::vector<std::vector<double>> Replicas::measure_layers(int64_t samples, double most_seconds) {
  std::vector<std::vector<double>> seconds(static_cast<size_t>(slots()));
  team_.run([&](Collective& member) {
    Executor& executor = executor_of(member);
    if (executor.worker().rank() == 0)
      seconds[static_cast<size_t>(executor.slot())] =
          measure_layer_seconds(config_.graph, samples, executor.worker().ops(), most_seconds);
  });
  return seconds;
}

}  // namespace dtrain
