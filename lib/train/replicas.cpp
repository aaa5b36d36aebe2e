#include "train/replicas.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "base/finite.h"
#include "train/reading.h"

namespace dtrain {

namespace {

/// The cores of each replica: the machine's divided among the devices, a device's among its replicas.
std::vector<std::vector<int>> share_cores(size_t replicas, const std::vector<int>& cores) {
  const auto count = static_cast<int>(replicas);
  std::vector<std::vector<int>> shares(replicas);
  for (int rank = 0; rank < count; ++rank) {
    const Range range = part_of(static_cast<int64_t>(cores.size()), rank, count);
    auto& mine = shares[static_cast<size_t>(rank)];
    mine.assign(cores.begin() + range.begin, cores.begin() + range.end);
    if (mine.empty()) mine.push_back(cores[static_cast<size_t>(rank) % cores.size()]);
  }
  return shares;
}

bool each_has_a_core(size_t replicas) {
  return replicas <= available_cores().size();
}

GpuMath math_of(const TrainOptions& train) {
  GpuMath math{.tf32 = train.precision == Precision::tf32, .deterministic = train.deterministic};
  if (train.precision == Precision::mixed_bfloat16) math.type = DType::bfloat16;
  if (train.precision == Precision::mixed_float16) math.type = DType::float16;
  return math;
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
  if (device.kind == DeviceId::Kind::gpu) return make_gpu_context(device, train.deterministic);
  if (train.precision != Precision::float32)
    throw UserError(
        fmt::format("{}: precision {} is for GPUs; the CPU computes in float32 (--set "
                    "train.precision=float32)",
                    device.str(), Codec<Precision>::write(train.precision).text()));
  return make_cpu_context(device, cores, pin);
}

}  // namespace

Replicas::Replicas(const RunConfig& config, Placement placement, World& world)
    : config_(config),
      placement_(std::move(placement)),
      world_(world),
      ranks_(world.local_ranks(static_cast<int>(placement_.replicas.size()))),
      layout_(config.graph),
      update_(layout_, *config.train.optimizer, update_options_of(config)),
      team_(static_cast<int>(placement_.replicas.size()), each_has_a_core(placement_.replicas.size())) {
  if (ranks_.total != size() && config.graph.is_synchronized())
    throw std::logic_error("synchronized layers cannot meet those of other processes yet");
  const bool pin = each_has_a_core(placement_.replicas.size());
  const auto cores = share_cores(placement_.replicas.size(), available_cores());
  std::vector<Worker*> first_workers;
  for (size_t rank = 0; rank < placement_.replicas.size(); ++rank) {
    // Updates go through the first slot's gradient sync, and the data to its feed.
    if (placement_.replicas[rank].size() != 1)
      throw std::logic_error("replicas of several devices cannot be trained yet");
    std::vector<std::unique_ptr<Worker>> workers;
    for (const DeviceId& device : placement_.replicas[rank])
      workers.push_back(std::make_unique<Worker>(static_cast<int>(rank),
                                                 make_context(device, cores[rank], pin, config.train),
                                                 math_of(config.train), layout_));
    first_workers.push_back(workers.at(0).get());
    replicas_.push_back(std::make_unique<Replica>(config.graph, layout_, config.heads, placement_.slots,
                                                  std::move(workers), team_.member(static_cast<int>(rank))));
  }
  team_.run([&](Collective& member) {
    for (const auto& worker : replica_of(member).workers()) worker->context().attach();
  });
  sync_ = make_gradient_sync(first_workers, layout_, update_, config.strategy->bucket_bytes(), world_);
  team_.on_abort([this] {
    sync_->abort();
    world_.abort();
  });
  state_.push_back({std::string(kParameters), layout_.size(), {}});
  totals_.sums.resize(Plan::count_totals(config.heads));
  if (update_.gradient_rule().dynamic_scaling)
    set_gradient_scale(
        {.loss_scale = GradientRule::kFirstLossScale, .gradient_scale = 1 / GradientRule::kFirstLossScale});
}

Replicas::~Replicas() {
  // Before the group that captured work calls.
  for (const auto& replica : replicas_) replica->forget_captured_graphs();
}

Range Replicas::share_of(int rank, int64_t batch_size) const {
  return part_of(batch_size, ranks_.first + rank, ranks_.total);
}

Microbatches Replicas::microbatches_of(int rank, int64_t batch_size) const {
  return {batch_size, config_.train.accumulate, ranks_.first + rank, ranks_.total,
          config_.graph.is_synchronized()};
}

int Replicas::most_pending() const {
  return sync_->runs_ahead() ? 1 : 0;
}

/// work(collective) on every member, with what its failure means for the parameters: samples that cannot be
/// read fail before any replica updates them, but where devices update by themselves behind sums that are
/// then cut short.
void Replicas::run_step(const std::function<void(Collective&)>& work) {
  try {
    team_.run(work);
  } catch (const ReadError&) {
    intact_ = intact_ && (size() == 1 || !sync_->runs_ahead());
    throw;
  } catch (...) {
    intact_ = false;
    throw;
  }
}

void Replicas::launch(const Batch& batch, int64_t step, double learning_rate) {
  StepOrder order{batch, static_cast<uint64_t>(config_.seed),
                  config_.train.optimizer->numbers(step, learning_rate)};
  order.numbers.samples = static_cast<float>(batch.size());
  run_step([&](Collective& member) {
    replica_of(member).train(order, microbatches_of(member.rank(), batch.size()), *sync_);
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
  run_step([&](Collective& member) {
    replica_of(member).evaluate(batch, share_of(member.rank(), batch.size()), *sync_);
  });
  return collect(batch.size(), 0);
}

void Replicas::predict(const Batch& batch, std::span<const View> outputs) {
  team_.run([&](Collective& member) {
    replica_of(member).predict(batch, share_of(member.rank(), batch.size()), *sync_, outputs);
  });
}

/// Adds the replicas' totals in the order of ranks. A replica that never gives any must not keep the others'
/// devices waiting for it.
const BatchTotals& Replicas::collect(int64_t samples, int back) try {
  totals_.samples = samples;
  std::fill(totals_.sums.begin(), totals_.sums.end(), 0.0);
  for (const auto& replica : replicas_) {
    const std::span<const double> totals = replica->totals(back);
    for (size_t i = 0; i < totals_.sums.size(); ++i) totals_.sums[i] += totals[i];
  }
  sync_->check();
  world_.all_reduce(totals_.sums);
  return totals_;
} catch (...) {
  intact_ = false;
  sync_->abort();
  world_.abort();
  throw;
}

std::vector<std::string> Replicas::advice() const {
  std::vector<std::string> all;
  if (const std::string advice = sync_->advice(); !advice.empty()) all.push_back(advice);
  const bool on_gpu = std::any_of(replicas_.begin(), replicas_.end(),
                                  [](const auto& replica) { return replica->worker().on_gpu(); });
  if (size() > 1 && on_gpu && config_.graph.is_synchronized())
    all.push_back(
        "synchronized batch normalization meets in the host's memory, which is slow: GPUs wait for the host "
        "twice a layer and step");
  return all;
}

std::span<float> Replicas::copy_of(StateArray& array) {
  if (!array.copy.data() && array.size > 0)
    array.copy =
        replicas_[0]->worker().context().allocate_host(static_cast<size_t>(array.size) * sizeof(float));
  return {array.copy.f32(), static_cast<size_t>(array.size)};
}

HostArrays Replicas::host_arrays(const std::function<std::span<float>(StateArray&)>& place) {
  HostArrays arrays{place(state_[0]), {}};
  for (size_t i = 1; i < state_.size(); ++i) arrays.slots.push_back(place(state_[i]));
  return arrays;
}

std::string Replicas::first_weight_not_finite() {
  std::span<const float> values = sync_->host_view(kParameters);
  std::vector<float> copy;
  if (values.empty()) {
    copy.resize(static_cast<size_t>(layout_.size()));
    sync_->read_state(kParameters, {0, layout_.size()}, copy.data());
    values = copy;
  }
  for (const ParameterSlice& slice : layout_.slices())
    if (!all_finite(values.subspan(static_cast<size_t>(slice.offset), static_cast<size_t>(slice.elements()))))
      return slice.layer + "/" + slice.name;
  return "";
}

HostArrays Replicas::download() {
  return host_arrays([this](StateArray& array) {
    if (!sync_->on_gpu()) return sync_->host_view(array.name);
    const std::span<float> copy = copy_of(array);
    sync_->read_state(array.name, {0, array.size}, copy.data());
    return copy;
  });
}

size_t Replicas::snapshot_bytes() const {
  return (static_cast<size_t>(layout_.size()) +
          update_.slots().size() * static_cast<size_t>(layout_.trained())) *
         sizeof(float);
}

bool Replicas::has_room_for_snapshot() const {
  // Half as much again must be left to the rest of the machine.
  return host_memory().available / 3 * 2 >= snapshot_bytes();
}

std::optional<HostArrays> Replicas::snapshot() {
  if (sync_->on_gpu()) return download();
  if (!state_[0].copy.data() && !has_room_for_snapshot()) return std::nullopt;
  const HostArrays arrays = host_arrays([this](StateArray& array) { return copy_of(array); });
  team_.run([&](Collective& member) {
    for (StateArray& array : state_) {
      const Range part = part_of(array.size, member.rank(), member.size());
      replica_of(member).worker().context().copy_to_host(array.copy.f32() + part.begin,
                                                         sync_->host_view(array.name).data() + part.begin,
                                                         static_cast<size_t>(part.size()) * sizeof(float));
    }
  });
  return arrays;
}

void Replicas::initialize() {
  for (const ParameterSlice& slice : layout_.slices()) {
    const Range range{slice.offset, slice.offset + slice.elements()};
    std::vector<float> values(static_cast<size_t>(slice.elements()));
    initialize_parameter(config_.graph, slice, static_cast<uint64_t>(config_.seed), values.data());
    sync_->write_state(kParameters, range, values.data());
  }
  finish_writing();
}

void Replicas::begin_average() {
  if (!has_average()) return;
  const Range all{0, layout_.trained()};
  std::vector<float> values(static_cast<size_t>(all.size()));
  sync_->read_state(kParameters, all, values.data());
  sync_->write_state(kAverage, all, values.data());
}

void Replicas::swap_average() {
  if (!has_average()) return;
  const Range all{0, layout_.trained()};
  if (const std::span<float> values = sync_->host_view(kParameters); !values.empty()) {
    std::swap_ranges(values.begin(), values.begin() + all.end, sync_->host_view(kAverage).begin());
  } else {
    std::vector<float> weights(static_cast<size_t>(all.size())), average(weights.size());
    sync_->read_state(kParameters, all, weights.data());
    sync_->read_state(kAverage, all, average.data());
    sync_->write_state(kParameters, all, average.data());
    sync_->write_state(kAverage, all, weights.data());
  }
  finish_writing();
}

void Replicas::finish_writing() {
  team_.run([&](Collective& member) { sync_->finish_writing(replica_of(member).worker()); });
}

GradientScale Replicas::gradient_scale() {
  GradientScale scale;
  Worker& first = replicas_[0]->worker();
  first.context().copy_to_host(&scale, &first.state()->gradient, sizeof(scale));
  return scale;
}

void Replicas::set_gradient_scale(const GradientScale& scale) {
  for (const auto& replica : replicas_)
    for (const auto& worker : replica->workers())
      worker->context().copy_to_device(&worker->state()->gradient, &scale, sizeof(scale));
}

}  // namespace dtrain
