#include "train/replica.h"

#include <algorithm>
#include <utility>

#include "base/stopwatch.h"

namespace dtrain {

Replica::Replica(const Graph& graph, const ParameterLayout& layout, std::span<const Head> heads,
                 std::span<const int> slots, std::vector<std::unique_ptr<Worker>> workers, Collective& member)
    : graph_(graph),
      layout_(layout),
      heads_(heads),
      slots_(slots),
      workers_(std::move(workers)),
      member_(member),
      met_by_layers_(member.size() > 1 && graph.is_synchronized() ? &member : nullptr),
      feed_(workers_.at(0)->ops()),
      count_(std::max<size_t>(Plan::count_totals(heads), 1)),
      totals_(count_) {
  for (const auto& worker : workers_) {
    ops_.push_back(&worker->ops());
    Context& context = worker->context();
    SlotMemory memory;
    memory.totals = context.allocate(count_ * sizeof(double));
    memory.host_totals = context.allocate_host(2 * count_ * sizeof(double));
    memory.host_numbers = context.allocate_host(2 * sizeof(StepNumbers));
    for (auto& event : memory.done) event = context.make_event();
    if (!heads.empty() && heads[0].weights)
      worker->set_own_weights(static_cast<const double*>(memory.totals.data()) + heads[0].totals() - 1);
    memory_.push_back(std::move(memory));
  }
}

size_t Replica::gradient_bytes(int64_t microbatches) const {
  return static_cast<size_t>(layout_.with_gradient()) * sizeof(float) * (microbatches > 1 ? 2 : 1);
}

size_t Replica::staging_bytes(const PlanKey& key) {
  size_t columns = 0;
  for (const Plan::Array& column : plan(key).columns()) columns += column.view.bytes();
  return 2 * columns + worker().context().workspace_bytes();
}

const Plan& Replica::plan(const PlanKey& key) {
  std::unique_ptr<Plan>& plan = plans_[key];
  if (!plan) plan = std::make_unique<Plan>(graph_, layout_, heads_, ops_, slots_, key, met_by_layers_);
  return *plan;
}

void Replica::grow_arena(size_t slot, size_t bytes) {
  Buffer& arena = memory_[slot].arena;
  if (bytes <= arena.bytes()) return;
  Context& context = workers_[slot]->context();
  context.synchronize();
  arena = Buffer();  // freed before the larger one is taken
  arena = context.allocate(bytes);
  moved_ = true;
}

float* Replica::gradients(size_t slot, bool accumulated) {
  if (!accumulated) return workers_[slot]->gradients();
  Buffer& gradients = memory_[slot].microbatch_gradients;
  if (!gradients.data()) gradients = workers_[slot]->context().allocate(gradient_bytes(1));
  return gradients.f32();
}

Frame& Replica::load(const Batch& batch, Range samples, Plan::Purpose purpose, GradientSync& sync,
                     bool accumulated) {
  const PlanKey key{purpose, samples.size()};
  const Plan& p = plan(key);
  std::vector<SlotArrays> arrays;
  for (size_t slot = 0; slot < workers_.size(); ++slot) {
    grow_arena(slot, p.arena_bytes(static_cast<int>(slot)));
    Worker& worker = *workers_[slot];
    const ParameterMemory& memory = sync.memory_of(worker);
    arrays.push_back({static_cast<std::byte*>(memory_[slot].arena.data()), memory.values(), memory.weights(),
                      purpose == Plan::Purpose::training ? gradients(slot, accumulated) : nullptr,
                      static_cast<double*>(memory_[slot].totals.data()), worker.state()});
  }
  Frame& frame = frames_.try_emplace({key, accumulated}, p).first->second;
  frame.bind(arrays);
  const Stopwatch stopwatch(step_seconds_.copying);
  feed_.load(batch, samples, frame);
  return frame;
}

Replica::StepMode Replica::next_mode(Plan::Purpose purpose, int64_t batch_size) {
  if (met_by_layers_ && purpose == Plan::Purpose::training) return StepMode::eager;
  const auto [entry, is_new] = modes_.try_emplace({purpose, batch_size}, StepMode::eager);
  StepMode& mode = entry->second;
  if (!is_new) mode = mode == StepMode::eager ? StepMode::capture : StepMode::replay;
  return mode;
}

void Replica::meet() {
  double moved = std::exchange(moved_, false) ? 1 : 0;
  member_.all_reduce({&moved, 1});
  if (moved == 0) return;
  for (const auto& worker : workers_) worker->context().synchronize();
  forget_captured_graphs();
  for (auto& [key, mode] : modes_) mode = StepMode::eager;
  member_.barrier();
}

void Replica::run(const WorkKey& key, const std::function<void()>& work) {
  const auto captured = captured_graphs_.find(key);
  if (captured == captured_graphs_.end() || !captured->second) return work();
  captured->second->run();
}

void Replica::clear_totals() {
  for (size_t slot = 0; slot < workers_.size(); ++slot)
    workers_[slot]->context().enqueue_zero(memory_[slot].totals.data(), count_ * sizeof(double));
}

/// Numbers and totals take turns in two places of the host's memory, so that one step can be described while
/// the one before computes; the step before that has been waited for.
void Replica::begin(const StepNumbers& numbers) {
  turn_ = 1 - turn_;
  for (size_t slot = 0; slot < workers_.size(); ++slot) {
    SlotMemory& memory = memory_[slot];
    memory.done[turn_]->synchronize();
    auto* host = static_cast<StepNumbers*>(memory.host_numbers.data()) + turn_;
    *host = numbers;
    workers_[slot]->context().enqueue_copy(&workers_[slot]->state()->now, host, sizeof(numbers));
  }
}

void Replica::end() {
  for (size_t slot = 0; slot < workers_.size(); ++slot) {
    SlotMemory& memory = memory_[slot];
    auto* host = static_cast<double*>(memory.host_totals.data()) + turn_ * count_;
    workers_[slot]->context().enqueue_copy(host, memory.totals.data(), count_ * sizeof(double));
    memory.done[turn_]->record();
  }
}

std::span<const double> Replica::totals(int back) {
  const size_t turn = back == 0 ? turn_ : 1 - turn_;
  std::fill(totals_.begin(), totals_.end(), 0.0);
  for (const SlotMemory& memory : memory_) {
    memory.done[turn]->synchronize();
    const auto* host = static_cast<const double*>(memory.host_totals.data()) + turn * count_;
    for (size_t i = 0; i < count_; ++i) totals_[i] += host[i];
  }
  return totals_;
}

void Replica::train(const StepOrder& order, const Microbatches& microbatches, GradientSync& sync) {
  begin(order.numbers);
  sync.begin(worker());
  const StepMode mode = next_mode(Plan::Purpose::training, order.batch.size());
  for (int index = 0; index < microbatches.count(); ++index)
    train_microbatch(order, microbatches[index], index, microbatches.count(), mode, sync);
  {
    const Stopwatch stopwatch(step_seconds_.updating);
    sync.end(worker(), member_);
  }
  end();
}

void Replica::complete(GradientSync& sync) {
  const Stopwatch stopwatch(step_seconds_.updating);
  sync.complete(worker());
}

void Replica::compute(Frame* frame, const StepInfo& info, bool accumulated,
                      const std::function<void(int64_t)>& on_ready) {
  if (!accumulated) clear_totals();
  if (frame) frame->plan().run(*frame, info, on_ready);
  if (!frame && met_by_layers_) plan({Plan::Purpose::training, 1}).meet(*met_by_layers_);
  for (size_t slot = 0; slot < workers_.size(); ++slot) {
    float* mine = gradients(slot, accumulated);
    if (!frame) ops_[slot]->fill(mine, 0.0f, layout_.with_gradient());
    if (accumulated)
      ops_[slot]->scale_add(workers_[slot]->gradients(), mine, 1.0f, 1.0f, layout_.with_gradient());
  }
}

void Replica::train_microbatch(const StepOrder& order, Range samples, int index, int count, StepMode mode,
                               GradientSync& sync) {
  const bool accumulated = index > 0, last = index == count - 1;
  Frame* frame = nullptr;
  if (samples.size() > 0) frame = &load(order.batch, samples, Plan::Purpose::training, sync, accumulated);
  const StepInfo info{order.seed, static_cast<uint64_t>(samples.begin), order.batch.size()};
  if (mode == StepMode::eager) {
    compute(frame, info, accumulated, nullptr);
    if (!last) return;
    meet();
    sync.ready(worker(), layout_.with_gradient());
    worker().context().synchronize();  // before the update's kernels are loaded, too
    return complete(sync);
  }
  std::function<void(int64_t)> on_ready;
  if (count == 1) on_ready = [&](int64_t end) { sync.ready(worker(), end); };
  const auto work = [&] {
    compute(frame, info, accumulated, on_ready);
    if (last) complete(sync);
  };
  const WorkKey key{{Plan::Purpose::training, samples.size()}, samples.begin, order.batch.size(), index};
  if (mode == StepMode::capture) {
    // Several devices' work is not one graph.
    if (workers_.size() == 1) captured_graphs_[key] = worker().context().capture(work);
    if (last) meet();
  }
  run(key, work);
}

void Replica::evaluate(const Batch& batch, Range share, GradientSync& sync) {
  begin({});
  sync.begin(worker());
  const StepMode mode = next_mode(Plan::Purpose::evaluation, batch.size());
  Frame* frame = nullptr;
  if (share.size() > 0) frame = &load(batch, share, Plan::Purpose::evaluation, sync, false);
  const auto work = [&] {
    clear_totals();
    if (frame) frame->plan().run(*frame, {0, static_cast<uint64_t>(share.begin), batch.size()});
  };
  const WorkKey key{{Plan::Purpose::evaluation, share.size()}, share.begin, batch.size(), 0};
  if (mode == StepMode::capture && workers_.size() == 1)
    captured_graphs_[key] = worker().context().capture(work);
  run(key, work);
  if (mode == StepMode::eager) meet();
  end();
}

void Replica::predict(const Batch& batch, Range share, GradientSync& sync, std::span<const View> outputs) {
  sync.begin(worker());
  if (share.size() == 0) return;
  Frame& frame = load(batch, share, Plan::Purpose::prediction, sync, false);
  const Plan& p = frame.plan();
  p.run(frame, {0, static_cast<uint64_t>(share.begin), batch.size()});
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int slot = p.buffers()[static_cast<size_t>(p.outputs()[i].buffer)].slot;
    download_output(frame.outputs()[i], *workers_[static_cast<size_t>(slot)], share, outputs[i]);
  }
}

/// One output's rows, as float32 where they are of the compute type.
void Replica::download_output(const View& mine, Worker& worker, Range share, const View& whole) {
  const size_t row = mine.bytes() / static_cast<size_t>(share.size());
  std::byte* to = whole.as<std::byte>() + row * static_cast<size_t>(share.begin);
  if (mine.dtype != DType::float32 || worker.ops().compute_type() == DType::float32) {
    worker.context().copy_to_host(to, mine.data, mine.bytes());
    return;
  }
  const Buffer wide = worker.context().allocate(mine.bytes());
  worker.ops().cast(wide.data(), DType::float32, mine.data, worker.ops().compute_type(), mine.elements());
  worker.context().copy_to_host(to, wide.data(), mine.bytes());
}

}  // namespace dtrain
