#include "engine/executor.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/stopwatch.h"
#include "engine/reading.h"
#include "nn/divisors.h"

namespace dtrain {

namespace {

BatchKind kind_of(Plan::Purpose purpose, const Batch& batch) {
  return {purpose, batch.size(), batch.length(), batch.source().dataset};
}

/// Returns the number of loss factors in each step: one per head if the losses need divisors
/// (needs_divisors()), otherwise 0.
size_t count_loss_factors(const ReplicaPlans& plans) {
  return needs_divisors(plans.graph(), plans.heads()) ? plans.heads().size() : 0;
}

}  // namespace

Executor::Executor(ReplicaPlans& plans, int slot, Worker& worker, SlotState& state, Collective& replicas,
                   Collective& waiting, Collective& here)
    : plans_(plans),
      slot_(slot),
      worker_(worker),
      state_(state),
      replicas_(replicas),
      waiting_(waiting),
      here_(here),
      shards_(state.reducer().shards_of(worker)),
      feed_(worker.ops()),
      buffers_(worker, std::max<size_t>(count_totals(plans.graph(), plans.heads()), 1),
               count_loss_factors(plans)),
      has_penalties_(plans.graph().has_penalties()),
      frames_(plans, slot, worker.context()),
      captured_(worker.context()) {
  const std::span<const Head> heads = plans.heads();
  if (!heads.empty() && heads[0].is_weighted() && !buffers_.loss_scales())
    worker_.set_row_weights(buffers_.device_totals() + heads[0].count_totals() - 1);
}

size_t Executor::gradient_bytes() const {
  if (plans_.reduces_gradients()) return 0;
  return static_cast<size_t>(plans_.layout().on(slot_).with_gradient()) * sizeof(float);
}

size_t Executor::arena_bytes(Plan::Purpose purpose, const std::set<int64_t>& sizes,
                             const std::set<int64_t>& lengths, int microbatches) {
  return total_bytes(frames_.needs(purpose, sizes, lengths), frames_.places(purpose, microbatches));
}

size_t Executor::transfer_bytes(Plan::Purpose purpose, const std::set<int64_t>& sizes,
                                const std::set<int64_t>& lengths) {
  return frames_.needs(purpose, sizes, lengths).transfers;
}

size_t Executor::staging_bytes(const Plan& plan) {
  size_t columns = 0;
  for (const ProgramArray& column : plan.program().columns)
    if (plan.program().values[column.value].slot == slot_) columns += column.view.bytes();
  return 2 * columns + worker_.context().workspace_bytes();
}

Frame* Executor::load(const Batch& batch, Range samples, Plan::Purpose purpose, int index, bool overlaps) {
  if (samples.size() == 0) return nullptr;
  const bool has_gradients = purpose == Plan::Purpose::training && !plans_.reduces_gradients();
  const ParameterMemory& memory = state_.store().memory_of(worker_);
  Frame& frame = frames_.bind(purpose, samples, index,
                              {.values = memory.values(),
                               .weights = memory.weights(),
                               .gradients = has_gradients ? worker_.gradients() : nullptr,
                               .shards = shards_,
                               .update = overlaps ? &state_.worker_update(worker_.rank()) : nullptr,
                               .totals = buffers_.device_totals(),
                               .state = worker_.state(),
                               .loss_scales = buffers_.loss_scales(),
                               .world = world_});
  const Stopwatch stopwatch(step_seconds_.copying);
  const auto working = Watchdog::working(watchdog_);
  feed_.load(batch, samples, frame);
  return &frame;
}

Executor::StepMode Executor::next_mode(const BatchKind& kind) {
  const bool training = kind.purpose == Plan::Purpose::training;
  if (plans_.slots() > 1 || plans_.reduces_gradients() || (training && plans_.has_collectives_in_layers()))
    return StepMode::eager;
  return captured_.begin(kind);
}

void Executor::synchronize_slots(Collective& slots) {
  std::array<double, 2> changes = {frames_.take_moved() ? 1.0 : 0.0, captured_.rejected() ? 1.0 : 0.0};
  slots.all_reduce(changes);
  const auto [moved, rejected] = changes;
  if (moved == 0 && rejected == 0) return;
  worker_.context().synchronize();
  moved > 0 ? captured_.forget() : captured_.drop();
  slots.barrier();
}

void Executor::compare_transfers(const BatchKind& kind, const Microbatches& microbatches) {
  const double mine = plans_.fingerprint(kind.purpose, microbatches, kind.length);
  std::vector<double> all(static_cast<size_t>(waiting_.size()));
  waiting_.all_gather({&mine, 1}, all);
  const auto first = all.begin() + worker_.rank() * plans_.slots();  // rank of the first slot of this replica
  if (std::any_of(first, first + plans_.slots(), [&](double other) { return other != mine; }))
    throw Error(
        "the processes have planned different transfers between the stages of the pipeline: use the same "
        "kind of device for all stages, and start each process with the same number of cores");
}

void Executor::begin(const StepNumbers& numbers, std::span<const float> loss_factors, const BatchKind& kind,
                     const Microbatches& microbatches) {
  buffers_.begin(numbers, loss_factors);
  first_time_ = started_.insert(kind).second;
  if (shards_) shards_->begin(first_time_);
  state_.begin(worker_, kind.purpose == Plan::Purpose::training);
  frames_.make_room(kind.purpose, microbatches, kind.length);
  if (first_time_ && plans_.has_remote_slots()) compare_transfers(kind, microbatches);
  plans_.expect(slot_, kind.purpose, microbatches, kind.length);
}

void Executor::gather(const Batch& batch, Range samples, const Frame* frame) {
  if (frame) feed_.gather(batch, samples, *frame, &worker_.state()->now.first);
}

void Executor::fetch_totals() {
  if (has_penalties_) state_.add_penalties(worker_, buffers_.device_totals() + buffers_.count() - 1);
  buffers_.fetch_totals();
}

void Executor::update_on_device() {
  const Stopwatch stopwatch(step_seconds_.updating);
  state_.run(state_.program(worker_.rank()).on_device, worker_);
}

void Executor::update_on_host() {
  const Stopwatch stopwatch(step_seconds_.updating);
  state_.run(state_.program(worker_.rank()).on_host, worker_);
}

void Executor::train_microbatches(const StepRequest& request, const Microbatches& microbatches) {
  if (plans_.slots() > 1) return train_by_schedule(request, microbatches);
  const StepMode mode = next_mode(kind_of(Plan::Purpose::training, request.batch));
  for (int index = 0; index < microbatches.count(); ++index)
    train_microbatch(request, microbatches[index], index, microbatches.count(), mode);
}

void Executor::train(const StepRequest& request, const Microbatches& microbatches) {
  launched_ = false;
  begin(request.numbers, request.loss_factors, kind_of(Plan::Purpose::training, request.batch), microbatches);
  try {
    train_microbatches(request, microbatches);
  } catch (const ReadError&) {
    buffers_.undo();
    throw;
  }
  // Waits until all slots have finished their reductions, because the kernels of the update must not be
  // loaded while a reduction is running.
  if (first_time_) {
    worker_.context().synchronize();
    waiting_.barrier();
  }
  update_on_host();
  buffers_.end();
  launched_ = true;
}

void Executor::clear_gradients() {
  if (plans_.reduces_gradients()) return;
  worker_.ops().fill(worker_.gradients(), 0.0f, plans_.layout().on(slot_).with_gradient());
}

void Executor::compute(Frame* frame, const StepInfo& info, bool accumulates) {
  if (!accumulates) buffers_.clear_totals();
  if (frame) return run_all(*frame, info);
  join_collectives(Plan::Purpose::training, Part::forward);
  join_collectives(Plan::Purpose::training, Part::backward);
  if (!accumulates) clear_gradients();
}

void Executor::join_collectives(Plan::Purpose purpose, Part part) {
  if (plans_.has_collectives_in_layers() || plans_.reduces_gradients())
    plans_.plan({purpose, 1}).join_collectives(slot_, part, replicas_, shards_);
}

void Executor::train_microbatch(const StepRequest& request, Range samples, int index, int count,
                                StepMode mode) {
  const bool accumulates = index > 0, last = index == count - 1;
  const bool overlaps = mode != StepMode::eager && count == 1;
  Frame* const frame = load(request.batch, samples, Plan::Purpose::training, index, overlaps);
  const StepInfo info{request.seed, static_cast<uint64_t>(samples.begin), request.batch.size()};
  const std::vector<Instruction>& reduction = state_.program(worker_.rank()).reduction;
  const auto compute_gradients = [&] {
    if (index == 0) buffers_.send_numbers();
    gather(request.batch, samples, frame);
    compute(frame, info, accumulates);
    if (!last) return;
    fetch_totals();
    state_.reducer().sum_totals(worker_, {buffers_.device_totals(), buffers_.count()});
  };
  if (mode == StepMode::eager) {
    compute_gradients();
    if (!last) return;
    // Waits until the graph of the previous step has finished, because NCCL forbids calls outside a graph
    // while a graph is running (see CapturedSteps::run()).
    worker_.context().synchronize();
    synchronize_slots(waiting_);
    state_.run(reduction, worker_);
    // Waits until the reductions have finished, because the kernels of the update must not be loaded while a
    // reduction is running.
    worker_.context().synchronize();
    return update_on_device();
  }
  const auto work = [&] {
    compute_gradients();
    if (!last) return;
    if (!frame || !overlaps) state_.run(reduction, worker_);
    update_on_device();
  };
  if (mode == StepMode::capture) {
    captured_.capture(index, buffers_.turn(), work);
    if (last) synchronize_slots(waiting_);
  }
  captured_.run(index, buffers_.turn(), work);
}

/// If gradients are accumulated over more microbatches than one run of the schedule processes, runs the
/// schedule several times. Therefore accumulation does not increase the number of microbatches in flight.
void Executor::train_by_schedule(const StepRequest& request, const Microbatches& microbatches) {
  buffers_.send_numbers();
  buffers_.clear_totals();
  const int at_once = plans_.microbatches();
  for (int first = 0; first < microbatches.count(); first += at_once)
    for (const StageTask& task : stage_tasks(plans_.schedule(), slot_, plans_.slots(),
                                             std::min(at_once, microbatches.count() - first))) {
      const int index = first + task.microbatch;
      if (task.kind == StageTask::Kind::forward)
        train_forward(request, microbatches[index], index);
      else
        train_backward(microbatches[index], index);
    }
  frames_.release_all();
  fetch_totals();
  state_.reducer().sum_totals(worker_, {buffers_.device_totals(), buffers_.count()});
  const std::vector<Instruction>& reduction = state_.program(worker_.rank()).reduction;
  // On CPUs, the reduction begins before all slots have finished: the processes exchange the gradients of
  // this stage while earlier stages still compute their gradients.
  if (!worker_.on_gpu()) state_.run(reduction, worker_);
  synchronize_slots(waiting_);
  worker_.context().synchronize();
  if (worker_.on_gpu()) state_.run(reduction, worker_);
  update_on_device();
}

void Executor::forward(Frame* frame, const StepInfo& info, Plan::Purpose purpose) {
  if (!frame) return join_collectives(purpose, Part::forward);
  frame->set_step(info);
  run_part(*frame, slot_, Part::forward);
}

void Executor::train_forward(const StepRequest& request, Range samples, int index) {
  Frame* const frame = load(request.batch, samples, Plan::Purpose::training, index);
  gather(request.batch, samples, frame);
  forward(frame, {request.seed, static_cast<uint64_t>(samples.begin), request.batch.size()},
          Plan::Purpose::training);
  if (frame) frames_.note_sent(index, frame);
}

void Executor::train_backward(Range samples, int index) {
  if (samples.size() > 0)
    return run_part(frames_.frame(Plan::Purpose::training, samples, index), slot_, Part::backward);
  join_collectives(Plan::Purpose::training, Part::backward);
  if (index == 0) clear_gradients();
}

void Executor::evaluate(const Batch& batch, const Microbatches& microbatches) {
  const BatchKind kind = kind_of(Plan::Purpose::evaluation, batch);
  begin({.first = batch.source().first}, {}, kind, microbatches);
  const StepMode mode = next_mode(kind);
  for (int index = 0; index < microbatches.count(); ++index) {
    const Range samples = microbatches[index];
    Frame* const frame = load(batch, samples, Plan::Purpose::evaluation, index);
    const auto work = [&] {
      if (index == 0) buffers_.send_numbers();
      if (index == 0) buffers_.clear_totals();
      gather(batch, samples, frame);
      forward(frame, {0, static_cast<uint64_t>(samples.begin), batch.size()}, Plan::Purpose::evaluation);
      if (index == microbatches.count() - 1) fetch_totals();
    };
    if (mode == StepMode::eager) {
      work();
    } else {
      if (mode == StepMode::capture) captured_.capture(index, buffers_.turn(), work);
      captured_.run(index, buffers_.turn(), work);
    }
    frames_.note_sent(0, frame);
  }
  frames_.release_all();
  if (mode != StepMode::replay) synchronize_slots(waiting_);
  buffers_.end();
}

void Executor::predict(const Batch& batch, const Microbatches& microbatches, std::span<const View> outputs) {
  begin({.first = batch.source().first}, {}, kind_of(Plan::Purpose::prediction, batch), microbatches);
  buffers_.send_numbers();
  for (int index = 0; index < microbatches.count(); ++index) {
    const Range samples = microbatches[index];
    Frame* const frame = load(batch, samples, Plan::Purpose::prediction, index);
    gather(batch, samples, frame);
    forward(frame, {0, static_cast<uint64_t>(samples.begin), batch.size()}, Plan::Purpose::prediction);
    if (!frame) continue;
    frames_.note_sent(0, frame);
    const Program& program = frame->plan().program();
    for (size_t i = 0; i < outputs.size(); ++i)
      if (program.values[program.outputs[i].value].slot == slot_)
        download_output(frame->outputs()[i], samples, outputs[i]);
  }
  frames_.release_all();
  buffers_.end();
  synchronize_slots(here_);
}

/// Copies the rows of one output to the host, converting the compute type to float32.
void Executor::download_output(const View& mine, Range samples, const View& whole) {
  const size_t row = mine.bytes() / static_cast<size_t>(samples.size());
  std::byte* to = whole.as<std::byte>() + row * static_cast<size_t>(samples.begin);
  Context& context = worker_.context();
  const DType type = worker_.ops().compute_type();
  if (mine.dtype != DType::float32 || type == DType::float32)
    return context.copy_to_host(to, mine.data, mine.bytes());
  if (wide_.bytes() < mine.bytes()) {
    wide_ = Buffer();  // frees the old buffer before allocating the larger one
    wide_ = context.allocate(mine.bytes());
  }
  worker_.ops().cast(wide_.data(), DType::float32, mine.data, type, mine.elements());
  context.copy_to_host(to, wide_.data(), mine.bytes());
}

}  // namespace dtrain
