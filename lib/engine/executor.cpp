#include "engine/executor.h"

#include <algorithm>
#include <utility>

#include "base/stopwatch.h"
#include "engine/reading.h"

namespace dtrain {

namespace {

BatchKind kind_of(Plan::Purpose purpose, const Batch& batch) {
  return {purpose, batch.size(), batch.source().dataset};
}

}  // namespace

Executor::Executor(ReplicaPlans& plans, int slot, Worker& worker, Collective& member, Collective& everyone)
    : plans_(plans),
      slot_(slot),
      worker_(&worker),
      member_(member),
      everyone_(everyone),
      feed_(worker_->ops()),
      count_(std::max<size_t>(count_totals(plans.heads()), 1)),
      sent_(static_cast<size_t>(plans.in_flight(slot)), nullptr),
      captured_(worker_->context()) {
  Context& context = worker_->context();
  totals_ = context.allocate(count_ * sizeof(double));
  host_totals_ = context.allocate_host(2 * count_ * sizeof(double));
  host_numbers_ = context.allocate_host(2 * sizeof(StepNumbers));
  for (auto& event : done_) event = context.make_event();
  const std::span<const Head> heads = plans.heads();
  if (!heads.empty() && heads[0].weights)
    worker_->set_own_weights(static_cast<const double*>(totals_.data()) + heads[0].count_totals() - 1);
}

size_t Executor::gradient_bytes() const {
  if (plans_.reduces_gradients()) return 0;
  return static_cast<size_t>(plans_.layout().on(slot_).with_gradient()) * sizeof(float);
}

size_t Executor::places(Plan::Purpose purpose, int microbatches) const {
  return purpose == Plan::Purpose::training ? std::min(sent_.size(), static_cast<size_t>(microbatches)) : 1;
}

ArenaBytes Executor::room_for(Plan::Purpose purpose, const std::set<int64_t>& sizes) {
  ArenaBytes room;
  for (const int64_t size : sizes) {
    const ArenaBytes& bytes = plans_.plan({purpose, size}).arena_bytes(slot_);
    room.frame = std::max(room.frame, bytes.frame);
    room.links += bytes.links;
    room.shared = std::max(room.shared, bytes.shared);
  }
  return room;
}

size_t Executor::arena_bytes(Plan::Purpose purpose, const std::set<int64_t>& sizes, int microbatches) {
  const ArenaBytes room = room_for(purpose, sizes);
  return (room.frame + room.links) * places(purpose, microbatches) + room.shared;
}

size_t Executor::staging_bytes(const Plan& plan) {
  size_t columns = 0;
  for (const ProgramArray& column : plan.program().columns)
    if (plan.program().values[column.value].slot == slot_) columns += column.view.bytes();
  return 2 * columns + worker_->context().workspace_bytes();
}

void Executor::grow(Buffer& memory, size_t bytes) {
  if (bytes <= memory.bytes()) return;
  Context& context = worker_->context();
  context.synchronize();
  memory = Buffer();  // freed before allocating the larger one
  memory = context.allocate(bytes);
  moved_ = true;
}

void Executor::make_room(Plan::Purpose purpose, const Microbatches& microbatches) {
  const ArenaBytes most = room_for(purpose, microbatches.sizes());
  frame_bytes_ = most.frame;
  grow(arena_, most.frame * places(purpose, microbatches.count()));
  grow(shared_, most.shared);
}

Executor::FrameKey Executor::frame_key(Plan::Purpose purpose, Range samples, int index) const {
  const bool training = purpose == Plan::Purpose::training;
  const int places = training ? static_cast<int>(sent_.size()) : 1;
  return {{purpose, samples.size()}, training && index > 0, index % places};
}

Frame& Executor::load(const Batch& batch, Range samples, Plan::Purpose purpose, GradientSync& sync,
                      int index) {
  const FrameKey key = frame_key(purpose, samples, index);
  const auto& [plan_key, accumulated, place] = key;
  release(place);
  Frame& frame = frames_.try_emplace(key, plans_.plan(plan_key)).first->second;
  const ParameterMemory& memory = sync.memory_of(*worker_);
  frame.bind(
      slot_,
      {.arena = static_cast<std::byte*>(arena_.data()) + frame_bytes_ * static_cast<size_t>(place),
       .shared = static_cast<std::byte*>(shared_.data()),
       .values = memory.values(),
       .weights = memory.weights(),
       .gradients =
           purpose == Plan::Purpose::training && !plans_.reduces_gradients() ? worker_->gradients() : nullptr,
       .accumulates = accumulated,
       .shards = shards_,
       .totals = static_cast<double*>(totals_.data()),
       .state = worker_->state()});
  const Stopwatch stopwatch(step_seconds_.copying);
  const auto working = Watchdog::working(watchdog_);
  feed_.load(batch, samples, frame);
  return frame;
}

void Executor::release(int place) {
  const Frame*& frame = sent_[static_cast<size_t>(place)];
  if (frame) wait_received(*frame, slot_);
  frame = nullptr;
}

void Executor::release_all() {
  for (int place = 0; place < static_cast<int>(sent_.size()); ++place) release(place);
}

Executor::StepMode Executor::next_mode(const BatchKind& kind) {
  const bool training = kind.purpose == Plan::Purpose::training;
  if (plans_.slots() > 1 || plans_.reduces_gradients() || (training && plans_.meets_in_layers()))
    return StepMode::eager;
  return captured_.begin(kind);
}

void Executor::meet() {
  std::array<double, 2> changes = {std::exchange(moved_, false) ? 1.0 : 0.0, captured_.refused() ? 1.0 : 0.0};
  everyone_.all_reduce(changes);
  const auto [moved, refused] = changes;
  if (moved == 0 && refused == 0) return;
  worker_->context().synchronize();
  moved > 0 ? captured_.forget() : captured_.drop();
  everyone_.barrier();
}

void Executor::capture(int index, GradientSync& sync, const std::function<void()>& work) {
  if (!captured_.capture(index, turn_, work)) sync.drop_captured(*worker_);
}

void Executor::clear_totals() {
  worker_->context().enqueue_zero(totals_.data(), count_ * sizeof(double));
}

/// Step scalars and totals are double-buffered in host memory, so that one step can be prepared while the
/// previous one computes. Waits for the step before the previous one.
void Executor::begin(const StepNumbers& numbers) {
  turn_ = 1 - turn_;
  done_[turn_]->synchronize();
  static_cast<StepNumbers*>(host_numbers_.data())[turn_] = numbers;
}

void Executor::gather(const Batch& batch, Range samples, const Frame* frame) {
  if (frame) feed_.gather(batch, samples, *frame, &worker_->state()->now.first);
}

void Executor::send_numbers() {
  const auto* host = static_cast<const StepNumbers*>(host_numbers_.data()) + turn_;
  worker_->context().enqueue_copy(&worker_->state()->now, host, sizeof(*host));
}

void Executor::begin(GradientSync& sync, const BatchKind& kind) {
  shards_ = sync.shards_of(*worker_);
  first_time_ = started_.insert(kind).second;
  if (shards_) shards_->begin(first_time_);
  sync.begin(*worker_, kind.purpose == Plan::Purpose::training);
}

void Executor::fetch_totals() {
  auto* host = static_cast<double*>(host_totals_.data()) + turn_ * count_;
  worker_->context().enqueue_copy(host, totals_.data(), count_ * sizeof(double));
}

std::span<const double> Executor::totals(int back) {
  const size_t turn = back == 0 ? turn_ : 1 - turn_;
  done_[turn]->synchronize();
  return {static_cast<const double*>(host_totals_.data()) + turn * count_, count_};
}

void Executor::train_microbatches(const StepOrder& order, const Microbatches& microbatches,
                                  GradientSync& sync) {
  if (plans_.slots() > 1) return train_by_schedule(order, microbatches, sync);
  const StepMode mode = next_mode(kind_of(Plan::Purpose::training, order.batch));
  for (int index = 0; index < microbatches.count(); ++index)
    train_microbatch(order, microbatches[index], index, microbatches.count(), mode, sync);
}

void Executor::train(const StepOrder& order, const Microbatches& microbatches, GradientSync& sync) {
  launched_ = false;
  begin(order.numbers);
  begin(sync, kind_of(Plan::Purpose::training, order.batch));
  make_room(Plan::Purpose::training, microbatches);
  try {
    train_microbatches(order, microbatches, sync);
  } catch (const ReadError&) {
    turn_ = 1 - turn_;  // undo: totals() refers to the previous step, which may still be running
    throw;
  }
  if (first_time_) {  // no reduction may be running while the kernels of end() are loaded
    worker_->context().synchronize();
    everyone_.barrier();
  }
  {
    const Stopwatch stopwatch(step_seconds_.updating);
    sync.end(*worker_, member_, everyone_);
  }
  done_[turn_]->record();
  launched_ = true;
}

void Executor::complete(GradientSync& sync) {
  const Stopwatch stopwatch(step_seconds_.updating);
  sync.complete(*worker_);
}

void Executor::clear_gradients() {
  if (plans_.reduces_gradients()) return;
  worker_->ops().fill(worker_->gradients(), 0.0f, plans_.layout().on(slot_).with_gradient());
}

void Executor::compute(Frame* frame, const StepInfo& info, bool accumulated,
                       const std::function<void(int64_t)>& on_ready) {
  if (!accumulated) clear_totals();
  if (frame) {
    run_all(*frame, info, on_ready);
  } else {
    meet_absent(Plan::Purpose::training, Plan::Part::forward);
    meet_absent(Plan::Purpose::training, Plan::Part::backward);
    if (!accumulated) clear_gradients();
  }
}

void Executor::meet_absent(Plan::Purpose purpose, Plan::Part part) {
  if (plans_.meets_in_layers() || plans_.reduces_gradients())
    plans_.plan({purpose, 1}).meet(slot_, part, member_, shards_);
}

void Executor::train_microbatch(const StepOrder& order, Range samples, int index, int count, StepMode mode,
                                GradientSync& sync) {
  const bool accumulated = index > 0, last = index == count - 1;
  Frame* frame = nullptr;
  if (samples.size() > 0) frame = &load(order.batch, samples, Plan::Purpose::training, sync, index);
  const StepInfo info{order.seed, static_cast<uint64_t>(samples.begin), order.batch.size()};
  if (mode == StepMode::eager) {
    if (index == 0) send_numbers();
    gather(order.batch, samples, frame);
    compute(frame, info, accumulated, nullptr);
    if (!last) return;
    fetch_totals();
    worker_->context().synchronize();  // as in CapturedSteps::run(): the previous step may be a graph
    meet();
    sync.ready(*worker_, plans_.layout().on(slot_).with_gradient());
    worker_->context().synchronize();  // also before loading the kernels of the update
    return complete(sync);
  }
  std::function<void(int64_t)> on_ready;
  if (count == 1) on_ready = [&](int64_t end) { sync.ready(*worker_, end); };
  const auto work = [&] {
    if (index == 0) send_numbers();
    gather(order.batch, samples, frame);
    compute(frame, info, accumulated, on_ready);
    if (!last) return;
    fetch_totals();
    complete(sync);
  };
  if (mode == StepMode::capture) {
    capture(index, sync, work);
    if (last) meet();
  }
  captured_.run(index, turn_, work);
}

/// Repeats the schedule if gradients are accumulated over more microbatches than it takes at once, so that no
/// more are ever in flight.
void Executor::train_by_schedule(const StepOrder& order, const Microbatches& microbatches,
                                 GradientSync& sync) {
  send_numbers();
  clear_totals();
  const int at_once = plans_.microbatches();
  for (int first = 0; first < microbatches.count(); first += at_once)
    for (const StageTask& task : stage_tasks(plans_.schedule(), slot_, plans_.slots(),
                                             std::min(at_once, microbatches.count() - first))) {
      const int index = first + task.microbatch;
      if (task.kind == StageTask::Kind::forward) {
        forward(order, microbatches[index], index, sync);
      } else {
        backward(microbatches[index], index);
      }
    }
  release_all();
  fetch_totals();
  meet();
  worker_->context().synchronize();
  complete(sync);
}

void Executor::forward(const StepOrder& order, Range samples, int index, GradientSync& sync) {
  if (samples.size() == 0) {
    return meet_absent(Plan::Purpose::training, Plan::Part::forward);
  }
  Frame& frame = load(order.batch, samples, Plan::Purpose::training, sync, index);
  frame.set_step({order.seed, static_cast<uint64_t>(samples.begin), order.batch.size()});
  gather(order.batch, samples, &frame);
  run_part(frame, slot_, Plan::Part::forward);
  sent_[static_cast<size_t>(index) % sent_.size()] = &frame;
}

void Executor::backward(Range samples, int index) {
  if (samples.size() == 0) {
    meet_absent(Plan::Purpose::training, Plan::Part::backward);
    if (index == 0) clear_gradients();
    return;
  }
  Frame& frame = frames_.at(frame_key(Plan::Purpose::training, samples, index));
  run_part(frame, slot_, Plan::Part::backward);
}

void Executor::evaluate(const Batch& batch, const Microbatches& microbatches, GradientSync& sync) {
  begin({.first = batch.source().first});
  begin(sync, kind_of(Plan::Purpose::evaluation, batch));
  make_room(Plan::Purpose::evaluation, microbatches);
  const StepMode mode = next_mode(kind_of(Plan::Purpose::evaluation, batch));
  for (int index = 0; index < microbatches.count(); ++index) {
    const Range samples = microbatches[index];
    Frame* frame = nullptr;
    if (samples.size() > 0) frame = &load(batch, samples, Plan::Purpose::evaluation, sync, index);
    const auto work = [&] {
      if (index == 0) send_numbers();
      if (index == 0) clear_totals();
      gather(batch, samples, frame);
      if (frame) {
        frame->set_step({0, static_cast<uint64_t>(samples.begin), batch.size()});
        run_part(*frame, slot_, Plan::Part::forward);
      } else {
        meet_absent(Plan::Purpose::evaluation, Plan::Part::forward);
      }
      if (index == microbatches.count() - 1) fetch_totals();
    };
    if (mode == StepMode::eager) {
      work();
    } else {
      if (mode == StepMode::capture) capture(index, sync, work);
      captured_.run(index, turn_, work);
    }
    sent_[0] = frame;
  }
  release_all();
  if (mode != StepMode::replay) meet();
  done_[turn_]->record();
}

void Executor::predict(const Batch& batch, const Microbatches& microbatches, GradientSync& sync,
                       std::span<const View> outputs) {
  begin({.first = batch.source().first});
  send_numbers();
  begin(sync, kind_of(Plan::Purpose::prediction, batch));
  make_room(Plan::Purpose::prediction, microbatches);
  for (int index = 0; index < microbatches.count(); ++index) {
    const Range samples = microbatches[index];
    if (samples.size() == 0) {
      meet_absent(Plan::Purpose::prediction, Plan::Part::forward);
      continue;
    }
    Frame& frame = load(batch, samples, Plan::Purpose::prediction, sync, index);
    frame.set_step({0, static_cast<uint64_t>(samples.begin), batch.size()});
    gather(batch, samples, &frame);
    const Program& program = frame.plan().program();
    run_part(frame, slot_, Plan::Part::forward);
    sent_[0] = &frame;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (program.values[program.outputs[i].value].slot == slot_)
        download_output(frame.outputs()[i], samples, outputs[i]);
  }
  release_all();
  done_[turn_]->record();
  meet();
}

/// Copies the rows of one output to the host, converting the compute type to float32.
void Executor::download_output(const View& mine, Range samples, const View& whole) {
  const size_t row = mine.bytes() / static_cast<size_t>(samples.size());
  std::byte* to = whole.as<std::byte>() + row * static_cast<size_t>(samples.begin);
  Context& context = worker_->context();
  const DType type = worker_->ops().compute_type();
  if (mine.dtype != DType::float32 || type == DType::float32)
    return context.copy_to_host(to, mine.data, mine.bytes());
  if (wide_.bytes() < mine.bytes()) {
    wide_ = Buffer();  // freed before allocating the larger one
    wide_ = context.allocate(mine.bytes());
  }
  worker_->ops().cast(wide_.data(), DType::float32, mine.data, type, mine.elements());
  context.copy_to_host(to, wide_.data(), mine.bytes());
}

}  // namespace dtrain
