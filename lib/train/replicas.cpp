#include "train/replicas.h"

#include <algorithm>
#include <cmath>

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

}  // namespace

Replicas::Replicas(const RunConfig& config, const std::vector<DeviceId>& devices)
    : config_(config),
      layout_(config.graph),
      team_(static_cast<int>(devices.size()), each_has_a_core(devices.size())) {
  const auto cores = share_cores(devices, available_cores());
  for (size_t rank = 0; rank < devices.size(); ++rank)
    replicas_.push_back(std::make_unique<Replica>(
        config.graph, layout_, config.heads,
        make_cpu_context(devices[rank], cores[rank], each_has_a_core(devices.size()))));
  team_.run([&](Collective& member) { replicas_[static_cast<size_t>(member.rank())]->attach(); });

  values_ = replicas_[0]->context().allocate(static_cast<size_t>(layout_.size()) * sizeof(float));
  for (const ParameterSlice& slice : layout_.slices()) {
    if (!slice.moving_average || slice.offset < layout_.trained() || slice.offset >= layout_.with_gradient())
      continue;
    statistics_.push_back({slice.offset, slice.offset + slice.elements()});
    momenta_.push_back(*slice.moving_average);
  }
  totals_.sums.resize(Plan::count_totals(config.heads));
}

Replicas::~Replicas() = default;

void Replicas::allocate_slots() {
  for (const Optimizer::Slot& slot : config_.train.optimizer->slots()) {
    slots_.push_back(
        replicas_[0]->context().allocate(static_cast<size_t>(layout_.trained()) * sizeof(float)));
    if (slot.initial != 0) std::fill_n(slots_.back().f32(), layout_.trained(), slot.initial);
  }
}

const BatchTotals& Replicas::train(const Batch& batch, int64_t step, double learning_rate) {
  team_.run([&](Collective& member) {
    Replica& replica = *replicas_[static_cast<size_t>(member.rank())];
    replica.compute_gradients(batch, part_of(batch.size(), member.rank(), member.size()),
                              config_.train.accumulate, static_cast<uint64_t>(config_.seed),
                              static_cast<uint64_t>(step), values_.f32());
    update(replica, member, step, learning_rate);
  });
  collect(batch.size());
  return totals_;
}

/// Sums the gradients, and moves this member's part of the parameters.
void Replicas::update(Replica& replica, Collective& member, int64_t step, double learning_rate) {
  float* gradients = replica.gradients();
  const Range mine = member.reduce_scatter(gradients, layout_.with_gradient());
  const auto clip = [&](Range part) {
    return Range{std::max(mine.begin, part.begin), std::min(mine.end, part.end)};
  };
  const Range trained = clip({0, layout_.trained()});

  double scale = 1;
  if (config_.train.clip_norm) {
    double squares =
        trained.size() > 0 ? replica.ops().sum_of_squares(gradients + trained.begin, trained.size()) : 0.0;
    member.all_reduce({&squares, 1});
    const double norm = std::sqrt(squares);
    if (norm > *config_.train.clip_norm) scale = *config_.train.clip_norm / norm;
  }
  if (trained.size() > 0) {
    std::vector<float*> slots;
    for (const Buffer& slot : slots_) slots.push_back(slot.f32() + trained.begin);
    replica.ops().update(config_.train.optimizer->step(step + 1, learning_rate, scale),
                         values_.f32() + trained.begin, gradients + trained.begin, slots, trained.size());
  }
  for (size_t i = 0; i < statistics_.size(); ++i) {
    const Range part = clip(statistics_[i]);
    if (part.size() > 0)
      replica.ops().update({MovingAverageStep{momenta_[i]}}, values_.f32() + part.begin,
                           gradients + part.begin, {}, part.size());
  }
}

const BatchTotals& Replicas::evaluate(const Batch& batch) {
  team_.run([&](Collective& member) {
    replicas_[static_cast<size_t>(member.rank())]->evaluate(
        batch, part_of(batch.size(), member.rank(), member.size()), values_.f32());
  });
  collect(batch.size());
  return totals_;
}

void Replicas::predict(const Batch& batch, std::span<const View> outputs) {
  team_.run([&](Collective& member) {
    replicas_[static_cast<size_t>(member.rank())]->predict(
        batch, part_of(batch.size(), member.rank(), member.size()), values_.f32(), outputs);
  });
}

/// Adds the replicas' totals in the order of ranks.
void Replicas::collect(int64_t samples) {
  totals_.samples = samples;
  std::fill(totals_.sums.begin(), totals_.sums.end(), 0.0);
  for (const auto& replica : replicas_)
    for (size_t i = 0; i < totals_.sums.size(); ++i) totals_.sums[i] += replica->totals()[i];
}

std::vector<MemoryPlan> Replicas::memory() {
  std::vector<MemoryPlan> plans(replicas_.size());
  const TrainOptions& train = config_.train;
  team_.run([&](Collective& member) {
    Replica& replica = *replicas_[static_cast<size_t>(member.rank())];
    MemoryPlan& plan = plans[static_cast<size_t>(member.rank())];
    plan.device = replica.context().device();
    plan.replica = member.rank();
    plan.threads = replica.context().threads();
    plan.share = part_of(train.batch_size, member.rank(), member.size()).size();
    plan.gradients = replica.gradient_bytes(std::min(train.accumulate, plan.share));
    if (plan.share == 0) return;
    const int64_t piece =
        part_of(plan.share, 0, static_cast<int>(std::min(train.accumulate, plan.share))).size();
    plan.activations = replica.arena_bytes(piece, Plan::Purpose::training);
    if (config_.dataset.validation)
      plan.activations =
          std::max(plan.activations, replica.arena_bytes(plan.share, Plan::Purpose::evaluation));
  });
  // The parameters and slots stand once, with the first replica.
  plans[0].parameters = static_cast<size_t>(layout_.size()) * sizeof(float);
  plans[0].slots = train.optimizer->slots().size() * static_cast<size_t>(layout_.trained()) * sizeof(float);
  return plans;
}

}  // namespace dtrain
