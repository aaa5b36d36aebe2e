#include "train/replicas.h"

#include <algorithm>

#include <fmt/format.h>

#include "train/reading.h"
#include "train/replica.h"

namespace dtrain {

namespace {

/// The cores of each replica: the machine's divided among the devices, a device's among its replicas.
std::vector<std::vector<int>> share_cores(const std::vector<DeviceId>& devices,
                                          const std::vector<int>& cores) {
  const auto count = static_cast<int>(devices.size());
  std::vector<std::vector<int>> shares(devices.size());
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
  if (train.precision == Precision::mixed_bfloat16) math.type = ComputeType::bfloat16;
  if (train.precision == Precision::mixed_float16) math.type = ComputeType::float16;
  return math;
}

GradientRule gradient_rule_of(const TrainOptions& train) {
  return {.clip_norm = static_cast<float>(train.clip_norm.value_or(0)),
          .dynamic_scaling = train.precision == Precision::mixed_float16};
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

Replicas::Replicas(const RunConfig& config, const std::vector<DeviceId>& devices)
    : config_(config),
      layout_(config.graph),
      update_(layout_, *config.train.optimizer, gradient_rule_of(config.train)),
      team_(static_cast<int>(devices.size()), each_has_a_core(devices.size())) {
  const auto cores = share_cores(devices, available_cores());
  for (size_t rank = 0; rank < devices.size(); ++rank)
    replicas_.push_back(std::make_unique<Replica>(
        static_cast<int>(rank), config.graph, layout_, config.heads,
        make_context(devices[rank], cores[rank], each_has_a_core(devices.size()), config.train),
        math_of(config.train)));
  team_.run([&](Collective& member) { replicas_[static_cast<size_t>(member.rank())]->context().attach(); });
  sync_ = make_gradient_sync(replicas_, layout_, update_, config.strategy->bucket_bytes());
  team_.on_abort([this] { sync_->abort(); });
  totals_.sums.resize(Plan::count_totals(config.heads));
  if (update_.gradient_rule().dynamic_scaling)
    set_gradient_scale(
        {.loss_scale = GradientRule::kFirstLossScale, .gradient_scale = 1 / GradientRule::kFirstLossScale});
}

Replicas::~Replicas() = default;

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
  const StepOrder order{batch, static_cast<uint64_t>(config_.seed), config_.train.accumulate,
                        config_.train.optimizer->numbers(step, learning_rate)};
  run_step([&](Collective& member) {
    replicas_[static_cast<size_t>(member.rank())]->train(
        order, part_of(batch.size(), member.rank(), member.size()), *sync_, member);
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
    replicas_[static_cast<size_t>(member.rank())]->evaluate(
        batch, part_of(batch.size(), member.rank(), member.size()), *sync_, member);
  });
  return collect(batch.size(), 0);
}

void Replicas::predict(const Batch& batch, std::span<const View> outputs) {
  team_.run([&](Collective& member) {
    replicas_[static_cast<size_t>(member.rank())]->predict(
        batch, part_of(batch.size(), member.rank(), member.size()), *sync_, outputs);
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
  return totals_;
} catch (...) {
  intact_ = false;
  sync_->abort();
  throw;
}

bool Replicas::on_gpu() const {
  return sync_->owner_of(0).on_gpu();
}

/// Where they are, which the host can read only of a CPU.
HostArrays Replicas::live() const {
  const ParameterMemory& memory = *sync_->memories()[0];
  HostArrays arrays{{memory.values(), static_cast<size_t>(layout_.size())}, {}};
  for (size_t i = 0; i < memory.slots(); ++i)
    arrays.slots.emplace_back(memory.slot(i), static_cast<size_t>(layout_.trained()));
  return arrays;
}

std::span<float> Replicas::in_host(Buffer& copy, std::span<float> array) {
  if (!copy.data() && !array.empty()) copy = sync_->owner_of(0).context().allocate_host(array.size_bytes());
  return {copy.f32(), array.size()};
}

HostArrays Replicas::copy() {
  HostArrays arrays = live();
  arrays.values = in_host(copy_.values, arrays.values);
  copy_.slots.resize(arrays.slots.size());
  for (size_t i = 0; i < arrays.slots.size(); ++i) arrays.slots[i] = in_host(copy_.slots[i], arrays.slots[i]);
  return arrays;
}

std::span<float> Replicas::values() {
  return on_gpu() ? in_host(copy_.values, live().values) : live().values;
}

HostArrays Replicas::arrays() {
  return on_gpu() ? copy() : live();
}

size_t Replicas::snapshot_bytes() const {
  return (static_cast<size_t>(layout_.size()) +
          config_.train.optimizer->slots().size() * static_cast<size_t>(layout_.trained())) *
         sizeof(float);
}

bool Replicas::has_room_for_snapshot() const {
  // Half as much again must be left to the rest of the machine.
  return host_memory().available / 3 * 2 >= snapshot_bytes();
}

std::optional<HostArrays> Replicas::snapshot() {
  if (on_gpu()) {
    fetch();
    return copy();
  }
  if (!copy_.values.data() && !has_room_for_snapshot()) return std::nullopt;
  const HostArrays from = live(), to = copy();
  team_.run([&](Collective& member) {
    Context& context = replicas_[static_cast<size_t>(member.rank())]->context();
    const auto copy_part = [&](std::span<const float> src, std::span<float> dst) {
      const Range part = part_of(static_cast<int64_t>(src.size()), member.rank(), member.size());
      context.copy_to_host(dst.data() + part.begin, src.data() + part.begin,
                           static_cast<size_t>(part.size()) * sizeof(float));
    };
    copy_part(from.values, to.values);
    for (size_t i = 0; i < from.slots.size(); ++i) copy_part(from.slots[i], to.slots[i]);
  });
  return to;
}

/// use(memory, its owner) for each memory, on the owner's thread: a GPU takes kernels from the threads that
/// it is current for.
template <class Use>
void Replicas::with_memories(Use&& use) {
  team_.run([&](Collective& member) {
    const auto memories = sync_->memories();
    for (size_t i = 0; i < memories.size(); ++i)
      if (Worker& owner = sync_->owner_of(i); owner.rank() == member.rank()) use(*memories[i], owner);
  });
}

void Replicas::allocate_slots() {
  with_memories([&](ParameterMemory& memory, Worker& owner) {
    memory.allocate_slots(owner.ops(), *config_.train.optimizer);
  });
}

void Replicas::start() {
  allocate_parameters(Plan::Purpose::training, config_.train.batch_size);
  initialize(config_.graph, layout_, static_cast<uint64_t>(config_.seed), values().data());
  allocate_slots();
  publish();
}

void Replicas::fetch() {
  if (!on_gpu()) return;
  Context& context = sync_->owner_of(0).context();
  const HostArrays from = live(), to = copy();
  context.copy_to_host(to.values.data(), from.values.data(), to.values.size_bytes());
  for (size_t i = 0; i < to.slots.size(); ++i)
    context.copy_to_host(to.slots[i].data(), from.slots[i].data(), to.slots[i].size_bytes());
}

void Replicas::publish() {
  if (!on_gpu()) return;
  with_memories([&](ParameterMemory& memory, Worker& owner) {
    const auto give = [&](float* to, const Buffer& from) {
      owner.context().copy_to_device(to, from.data(), from.bytes());
    };
    give(memory.values(), copy_.values);
    // Those that nobody asked for are as allocate_slots() made them.
    for (size_t i = 0; i < copy_.slots.size(); ++i) give(memory.slot(i), copy_.slots[i]);
    memory.refresh_copy(owner.ops());
    owner.context().synchronize();
  });
}

GradientScale Replicas::gradient_scale() {
  GradientScale scale;
  Replica& first = *replicas_[0];
  first.context().copy_to_host(&scale, &first.state()->gradient, sizeof(scale));
  return scale;
}

void Replicas::set_gradient_scale(const GradientScale& scale) {
  for (const auto& replica : replicas_)
    replica->context().copy_to_device(&replica->state()->gradient, &scale, sizeof(scale));
}

}  // namespace dtrain
