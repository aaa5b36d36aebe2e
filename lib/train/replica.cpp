#include "train/replica.h"

#include <algorithm>
#include <utility>

namespace dtrain {

Replica::Replica(int rank, const Graph& graph, const ParameterLayout& layout, std::span<const Head> heads,
                 std::unique_ptr<Context> context, const GpuMath& math)
    : Worker(rank, std::move(context), math, layout),
      graph_(graph),
      layout_(layout),
      heads_(heads),
      feed_(ops()),
      count_(std::max<size_t>(Plan::count_totals(heads), 1)) {
  totals_ = this->context().allocate(count_ * sizeof(double));
  host_totals_ = this->context().allocate_host(2 * count_ * sizeof(double));
  host_numbers_ = this->context().allocate_host(2 * sizeof(StepNumbers));
}

size_t Replica::gradient_bytes(int64_t pieces) const {
  return static_cast<size_t>(layout_.with_gradient()) * sizeof(float) * (pieces > 1 ? 2 : 1);
}

size_t Replica::staging_bytes(int64_t share, Plan::Purpose purpose) {
  size_t columns = 0;
  for (const View& column : plan(share, purpose).columns()) columns += column.bytes();
  return 2 * columns + context().workspace_bytes();
}

Plan& Replica::plan(int64_t batch, Plan::Purpose purpose) {
  std::unique_ptr<Plan>& plan = plans_[{batch, purpose}];
  if (!plan) plan = std::make_unique<Plan>(graph_, layout_, heads_, ops(), batch, purpose);
  return *plan;
}

Plan& Replica::ready(const Batch& batch, Range samples, Plan::Purpose purpose, GradientSync& sync,
                     float* gradients) {
  Plan& p = plan(samples.size(), purpose);
  if (p.arena_bytes() > arena_.bytes()) {
    context().synchronize();
    arena_ = Buffer();  // freed before the larger one is taken
    arena_ = context().allocate(p.arena_bytes());
    moved_ = true;
  }
  const ParameterMemory& memory = sync.memory_of(rank());
  p.bind({static_cast<std::byte*>(arena_.data()), memory.values(), memory.weights(), gradients,
          static_cast<double*>(totals_.data()), state()});
  feed_.load(batch, samples, p);
  return p;
}

Replica::Time Replica::count(Plan::Purpose purpose, int64_t batch_size) {
  const auto [entry, is_new] = times_.try_emplace({purpose, batch_size}, Time::first);
  if (!is_new) entry->second = entry->second == Time::first ? Time::second : Time::later;
  return entry->second;
}

void Replica::meet(Collective& member) {
  double moved = std::exchange(moved_, false) ? 1 : 0;
  member.all_reduce({&moved, 1});
  if (moved == 0) return;
  context().synchronize();
  forget_captured_graphs();
  for (auto& [batch, time] : times_) time = Time::first;
  member.barrier();
}

void Replica::replay(const WorkKey& key, const std::function<void()>& work) {
  const auto captured = captured_graphs_.find(key);
  if (captured == captured_graphs_.end() || !captured->second) return work();
  captured->second->run();
}

void Replica::clear_totals() {
  context().enqueue_zero(totals_.data(), count_ * sizeof(double));
}

/// Numbers and totals go through one of two slots of the host's memory, so that one step can be described
/// while the one before computes; the step before that has been waited for.
void Replica::begin(const StepNumbers& numbers) {
  slot_ = 1 - slot_;
  context().wait(slot_);
  auto* host = static_cast<StepNumbers*>(host_numbers_.data()) + slot_;
  *host = numbers;
  context().enqueue_copy(&state()->now, host, sizeof(numbers));
}

void Replica::end() {
  auto* host = static_cast<double*>(host_totals_.data()) + static_cast<size_t>(slot_) * count_;
  context().enqueue_copy(host, totals_.data(), count_ * sizeof(double));
  context().mark(slot_);
}

std::span<const double> Replica::totals(int back) {
  const int slot = back == 0 ? slot_ : 1 - slot_;
  context().wait(slot);
  return {static_cast<double*>(host_totals_.data()) + static_cast<size_t>(slot) * count_, count_};
}

void Replica::train(const StepOrder& order, Range share, GradientSync& sync, Collective& member) {
  begin(order.numbers);
  sync.begin(*this);
  const Time time = count(Plan::Purpose::training, order.batch.size());
  // An empty share is one empty piece.
  const auto parts = static_cast<int>(std::clamp<int64_t>(share.size(), 1, order.pieces));
  for (int part = 0; part < parts; ++part) {
    const Range piece = part_of(share.size(), part, parts);
    train_piece(order, {share.begin + piece.begin, share.begin + piece.end}, part, parts, time, sync, member);
  }
  sync.end(*this, member);
  end();
}

void Replica::train_piece(const StepOrder& order, Range piece, int part, int parts, Time time,
                          GradientSync& sync, Collective& member) {
  if (part > 0 && !piece_gradients_.data()) piece_gradients_ = context().allocate(gradient_bytes(1));
  float* into = part == 0 ? gradients() : piece_gradients_.f32();
  Plan* p = piece.size() > 0 ? &ready(order.batch, piece, Plan::Purpose::training, sync, into) : nullptr;
  const bool last = part == parts - 1;
  const auto compute = [&](const std::function<void(int64_t)>& on_ready) {
    if (part == 0) clear_totals();
    if (p) {
      p->run({order.seed, static_cast<uint64_t>(piece.begin), order.batch.size()},
             parts == 1 ? on_ready : nullptr);
    } else {
      ops().fill(into, 0.0f, layout_.with_gradient());
    }
    if (part > 0) ops().scale_add(gradients(), into, 1.0f, 1.0f, layout_.with_gradient());
  };
  if (time == Time::first) {
    compute(nullptr);
    if (!last) return;
    meet(member);
    sync.ready(*this, layout_.with_gradient());
    context().synchronize();  // before the update's kernels are loaded, too
    return sync.complete(*this);
  }
  const auto work = [&] {
    compute([&](int64_t end) { sync.ready(*this, end); });
    if (last) sync.complete(*this);
  };
  const WorkKey key{Plan::Purpose::training, piece.size(), piece.begin, order.batch.size(), part};
  if (time == Time::second) {
    captured_graphs_[key] = context().capture(work);
    if (last) meet(member);
  }
  replay(key, work);
}

void Replica::evaluate(const Batch& batch, Range share, GradientSync& sync, Collective& member) {
  begin({});
  sync.begin(*this);
  const Time time = count(Plan::Purpose::evaluation, batch.size());
  Plan* p = share.size() > 0 ? &ready(batch, share, Plan::Purpose::evaluation, sync, nullptr) : nullptr;
  const auto work = [&] {
    clear_totals();
    if (p) p->run({0, static_cast<uint64_t>(share.begin), batch.size()});
  };
  const WorkKey key{Plan::Purpose::evaluation, share.size(), share.begin, batch.size(), 0};
  if (time == Time::second) captured_graphs_[key] = context().capture(work);
  replay(key, work);
  if (time == Time::first) meet(member);
  end();
}

void Replica::predict(const Batch& batch, Range share, GradientSync& sync, std::span<const View> outputs) {
  sync.begin(*this);
  if (share.size() == 0) return;
  Plan& p = ready(batch, share, Plan::Purpose::prediction, sync, nullptr);
  p.run({0, static_cast<uint64_t>(share.begin), batch.size()});
  for (size_t i = 0; i < outputs.size(); ++i) fetch(p.outputs()[i], share, outputs[i]);
}

/// One output's rows, as float32 where they are of the compute type.
void Replica::fetch(const View& mine, Range share, const View& whole) {
  const size_t row = mine.bytes() / static_cast<size_t>(share.size());
  std::byte* to = whole.as<std::byte>() + row * static_cast<size_t>(share.begin);
  if (mine.dtype != DType::float32 || ops().compute_type() == ComputeType::float32) {
    context().copy_to_host(to, mine.data, mine.bytes());
    return;
  }
  const Buffer wide = context().allocate(mine.bytes());
  ops().column_sum(wide.f32(), mine.data, 1, mine.elements());  // the sum over one row
  context().copy_to_host(to, wide.data(), mine.bytes());
}

}  // namespace dtrain
