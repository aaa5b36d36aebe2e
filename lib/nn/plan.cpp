#include "nn/plan.h"

#include <algorithm>

namespace dtrain {

int64_t Head::count_totals() const {
  int64_t count = weights ? 2 : 1;
  for (const HeadMetric& metric : metrics) count += metric.sums;
  return count;
}

Plan::~Plan() = default;

size_t Plan::count_totals(std::span<const Head> heads) {
  size_t count = 0;
  for (const Head& head : heads) count += static_cast<size_t>(head.count_totals());
  return count;
}

void Plan::run(Frame& frame, const StepInfo& info, const std::function<void(int64_t)>& on_ready) const {
  frame.set_step(info);
  auto ready = ready_.begin();
  for (size_t done = 0; done < instructions_.size();) {
    instructions_[done].call(frame);
    ++done;
    for (; on_ready && ready != ready_.end() && ready->first == done; ++ready) on_ready(ready->second);
  }
  for (int slot = 0; slot < slots(); ++slot) wait_received(frame, slot);
}

bool Plan::belongs(const Instruction& instruction, int slot, Part part) {
  const bool backward = instruction.phase == Instruction::Phase::backward;
  return instruction.slot == slot && backward == (part == Part::backward);
}

void Plan::run_part(Frame& frame, int slot, Part part) const {
  for (const Instruction& instruction : instructions_)
    if (belongs(instruction, slot, part)) instruction.call(frame);
}

void Plan::wait_received(const Frame& frame, int slot) const {
  for (size_t i = 0; i < links_.size(); ++i)
    if (links_[i].from == slot) links_[i].link->wait_received(frame.sent(static_cast<int>(i)));
}

void Plan::meet(int slot, Part part, Collective& replicas, StateShards* shards) const {
  for (const Instruction& instruction : instructions_) {
    if (!belongs(instruction, slot, part)) continue;
    if (instruction.meeting > 0) all_gather_zeros(replicas, instruction.meeting);
    if (instruction.gathered.size() > 0) shards->gather(instruction.gathered, nullptr);
    if (instruction.reduced.size() > 0) shards->reduce(instruction.reduced, nullptr);
  }
}

void Plan::abort() const noexcept {
  for (const SlotLink& link : links_) link.link->abort();
}

Frame::Frame(const Plan& plan)
    : plan_(plan),
      arrays_(plan.arena_bytes_.size()),
      buffers_(plan.buffers_.size(), nullptr),
      arguments_(plan.calls_.size()),
      sent_(plan.links_.size(), 0) {
  for (const Plan::Array& column : plan.columns_) columns_.push_back(column.view);
  for (const Plan::Array& output : plan.outputs_) outputs_.push_back(output.view);
}

void Frame::bind(int slot, const SlotArrays& arrays) {
  SlotArrays& mine = arrays_[static_cast<size_t>(slot)];
  if (mine == arrays) return;
  mine = arrays;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const PlanBuffer& buffer = plan_.buffers_[i];
    if (buffer.slot == slot) buffers_[i] = (buffer.is_shared ? mine.shared : mine.arena) + buffer.offset;
  }
  for (size_t i = 0; i < columns_.size(); ++i) columns_[i].data = at(plan_.columns_[i].buffer);
  for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i].data = at(plan_.outputs_[i].buffer);
  for (size_t call = 0; call < arguments_.size(); ++call)
    if (plan_.calls_[call].slot == slot) bind_call(call);
}

void Frame::bind_call(size_t number) {
  const LayerCall& call = plan_.calls_[number];
  const SlotArrays& slot = arrays(call.slot);
  const size_t element_bytes = plan_.element_bytes_[static_cast<size_t>(call.slot)];
  LayerArguments& args = arguments_[number];
  args = {};
  for (const int buffer : call.inputs) args.inputs.push_back(at(buffer));
  for (const int buffer : call.outputs) args.outputs.push_back(at(buffer));
  for (const int buffer : call.diff_outputs) args.diff_outputs.push_back(at(buffer));
  for (const int buffer : call.diff_inputs) args.diff_inputs.push_back(at(buffer));
  for (const ParameterPlace& place : call.parameters) {
    const bool is_own = place.offset >= 0;
    args.parameters.push_back(is_own ? slot.values + place.offset
                                     : static_cast<const float*>(at(place.buffer)) + place.at);
    const std::byte* weights = is_own ? slot.weights : static_cast<const std::byte*>(at(place.weights));
    args.weights.push_back(weights + static_cast<size_t>(is_own ? place.offset : place.at) * element_bytes);
  }
  for (const GradientPlace& place : call.gradients)
    args.diff_parameters.push_back(gradient(call.slot, place));
  args.saved = at(call.saved);
  args.addend = at(call.addend);
}

float* Frame::gradient(int slot, const GradientPlace& place) const {
  const bool is_added = place.buffer >= 0 && arrays(slot).accumulates;
  if (place.offset >= 0 && !is_added) return arrays(slot).gradients + place.offset;
  return place.buffer < 0 ? nullptr : static_cast<float*>(at(place.buffer)) + place.at;
}

float Frame::share() const {
  return static_cast<float>(static_cast<double>(plan_.batch()) / static_cast<double>(step_.global_batch));
}

LayerArguments& Frame::arguments(int call, int scratch) {
  LayerArguments& args = arguments_[static_cast<size_t>(call)];
  const LayerCall& made = plan_.calls_[static_cast<size_t>(call)];
  args.scratch = at(scratch);
  args.seed = step_.seed;
  args.step = &arrays(made.slot).state->now.step;
  args.first_sample = step_.first_sample;
  args.share = made.users == 1 ? share() : share() / static_cast<float>(made.users);
  return args;
}

}  // namespace dtrain
