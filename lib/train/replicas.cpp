#include "train/replicas.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

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
  exchange_ = make_exchange(replicas_, layout_, update_, config.strategy->bucket_bytes());
  team_.on_abort([this] { exchange_->abort(); });
  if (exchange_->keeper_of(0).on_gpu()) mirror_.emplace();
  totals_.sums.resize(Plan::count_totals(config.heads));
  if (update_.gradient_rule().dynamic_scaling)
    set_gradient_scale(
        {.loss_scale = GradientRule::kFirstLossScale, .gradient_scale = 1 / GradientRule::kFirstLossScale});
}

Replicas::~Replicas() = default;

int Replicas::most_pending() const {
  return exchange_->runs_ahead() ? 1 : 0;
}

void Replicas::launch(const Batch& batch, int64_t step, double learning_rate) {
  const StepOrder order{batch, static_cast<uint64_t>(config_.seed), config_.train.accumulate,
                        config_.train.optimizer->numbers(step, learning_rate)};
  team_.run([&](Collective& member) {
    replicas_[static_cast<size_t>(member.rank())]->train(
        order, part_of(batch.size(), member.rank(), member.size()), *exchange_, member);
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
  team_.run([&](Collective& member) {
    replicas_[static_cast<size_t>(member.rank())]->evaluate(
        batch, part_of(batch.size(), member.rank(), member.size()), *exchange_);
  });
  return collect(batch.size(), 0);
}

void Replicas::predict(const Batch& batch, std::span<const View> outputs) {
  team_.run([&](Collective& member) {
    replicas_[static_cast<size_t>(member.rank())]->predict(
        batch, part_of(batch.size(), member.rank(), member.size()), *exchange_, outputs);
  });
}

/// Adds the replicas' totals in the order of ranks.
const BatchTotals& Replicas::collect(int64_t samples, int back) {
  totals_.samples = samples;
  std::fill(totals_.sums.begin(), totals_.sums.end(), 0.0);
  for (const auto& replica : replicas_) {
    const std::span<const double> totals = replica->totals(back);
    for (size_t i = 0; i < totals_.sums.size(); ++i) totals_.sums[i] += totals[i];
  }
  exchange_->check();
  return totals_;
}

std::span<float> Replicas::values() {
  const auto size = static_cast<size_t>(layout_.size());
  if (!mirror_) return {exchange_->memories()[0]->values(), size};
  mirror_->values.resize(size);
  return mirror_->values;
}

std::span<float> Replicas::slot(size_t index) {
  const auto size = static_cast<size_t>(layout_.trained());
  if (!mirror_) return {exchange_->memories()[0]->slot(index), size};
  return mirror_->slots[index];
}

/// use(memory, its keeper) for each memory, on the keeper's thread: a GPU takes kernels from the threads that
/// it is current for.
template <class Use>
void Replicas::with_memories(Use&& use) {
  team_.run([&](Collective& member) {
    const auto memories = exchange_->memories();
    for (size_t i = 0; i < memories.size(); ++i)
      if (Site& keeper = exchange_->keeper_of(i); keeper.rank() == member.rank()) use(*memories[i], keeper);
  });
}

void Replicas::allocate_slots() {
  with_memories([&](ParameterMemory& memory, Site& keeper) {
    memory.allocate_slots(keeper.ops(), *config_.train.optimizer);
  });
  if (!mirror_) return;
  for (const Optimizer::Slot& slot : config_.train.optimizer->slots())
    mirror_->slots.emplace_back(static_cast<size_t>(layout_.trained()), slot.initial);
}

void Replicas::fetch() {
  if (!mirror_) return;
  Context& context = exchange_->keeper_of(0).context();
  const ParameterMemory& memory = *exchange_->memories()[0];
  context.copy_to_host(values().data(), memory.values(), values().size_bytes());
  for (size_t i = 0; i < mirror_->slots.size(); ++i)
    context.copy_to_host(slot(i).data(), memory.slot(i), slot(i).size_bytes());
}

void Replicas::publish() {
  if (!mirror_) return;
  const std::span<const float> from = values();
  with_memories([&](ParameterMemory& memory, Site& keeper) {
    keeper.context().copy_to_device(memory.values(), from.data(), from.size_bytes());
    for (size_t i = 0; i < mirror_->slots.size(); ++i)
      keeper.context().copy_to_device(memory.slot(i), mirror_->slots[i].data(),
                                      mirror_->slots[i].size() * sizeof(float));
    memory.refresh_copy(keeper.ops());
    keeper.context().synchronize();
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

MemoryPlan Replicas::memory_of(Replica& replica, int64_t batch_size) {
  MemoryPlan plan{.device = replica.context().device(), .replica = replica.rank()};
  plan.threads = replica.context().threads();
  plan.share = part_of(batch_size, replica.rank(), size()).size();
  const int64_t pieces = std::min(config_.train.accumulate, plan.share);
  plan.gradients = replica.gradient_bytes(pieces);
  if (plan.share == 0) return plan;
  const int64_t piece = part_of(plan.share, 0, static_cast<int>(pieces)).size();
  plan.activations = replica.arena_bytes(piece, Plan::Purpose::training);
  if (config_.dataset.validation)
    plan.activations = std::max(plan.activations, replica.arena_bytes(plan.share, Plan::Purpose::evaluation));
  if (replica.on_gpu()) plan.staging = replica.staging_bytes(plan.share);
  if (replica.on_gpu()) plan.data = data_bytes_;
  return plan;
}

std::vector<MemoryPlan> Replicas::memory(int64_t batch_size) {
  std::vector<MemoryPlan> plans(replicas_.size());
  team_.run([&](Collective& member) {
    const auto rank = static_cast<size_t>(member.rank());
    plans[rank] = memory_of(*replicas_[rank], batch_size);
  });
  // The parameters and slots of a memory stand once, with the first replica that has it.
  const auto trained_in = exchange_->memories();
  std::vector<const ParameterMemory*> seen;
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    const ParameterMemory* memory = &exchange_->memory_of(static_cast<int>(rank));
    if (std::find(seen.begin(), seen.end(), memory) != seen.end()) continue;
    seen.push_back(memory);
    plans[rank].parameters = memory->bytes();
    if (std::any_of(trained_in.begin(), trained_in.end(), [&](const auto& m) { return m.get() == memory; }))
      plans[rank].slots =
          config_.train.optimizer->slots().size() * static_cast<size_t>(layout_.trained()) * sizeof(float);
  }
  return plans;
}

/// Whether every GPU has room for its replicas; what it lacks where it has not.
bool Replicas::fits(int64_t batch_size, std::string* why) {
  std::map<int, size_t> needed;
  for (const MemoryPlan& plan : memory(batch_size))
    if (plan.device.kind == DeviceId::Kind::gpu) needed[plan.device.index] += plan.total();
  for (const auto& replica : replicas_) {
    if (!replica->on_gpu()) continue;
    const int index = replica->context().device().index;
    const size_t free = replica->context().free_bytes();
    if (needed[index] <= free) continue;
    if (why)
      *why = fmt::format("gpu:{}: batches of {} need {} MiB there, {} MiB are free", index, batch_size,
                         needed[index] >> 20, free >> 20);
    return false;
  }
  return true;
}

void Replicas::allocate_parameters() {
  std::string why;
  if (!fits(config_.train.batch_size, &why)) {
    int64_t most = 0, least_that_does_not = config_.train.batch_size;
    while (least_that_does_not - most > 1) {
      const int64_t middle = most + (least_that_does_not - most) / 2;
      (fits(middle, nullptr) ? most : least_that_does_not) = middle;
    }
    throw Error(most > 0 ? fmt::format("{}; the largest batch that fits is {}", why, most)
                         : fmt::format("{}; not even one sample fits", why));
  }
  for (const auto& replica : replicas_) exchange_->memory_of(replica->rank()).allocate(replica->ops());
  const auto memories = exchange_->memories();
  for (size_t i = 0; i < memories.size(); ++i) memories[i]->allocate(exchange_->keeper_of(i).ops());
}

}  // namespace dtrain
