#include "nn/plan.h"

#include <algorithm>

namespace dtrain {

int64_t Head::totals() const {
  int64_t count = weights ? 2 : 1;
  for (const HeadMetric& metric : metrics) count += metric.sums;
  return count;
}

Plan::~Plan() = default;

size_t Plan::count_totals(std::span<const Head> heads) {
  size_t count = 0;
  for (const Head& head : heads) count += static_cast<size_t>(head.totals());
  return count;
}

size_t Plan::offset_of(int number) const {
  return arenas_[static_cast<size_t>(buffer(number).slot)].offset(buffer(number).in_arena);
}

Lifetime Plan::lifetime_of(int number) const {
  return arenas_[static_cast<size_t>(buffer(number).slot)].lifetime(buffer(number).in_arena);
}

void Plan::run(Frame& frame, const StepInfo& info, const std::function<void(int64_t)>& on_ready) const {
  frame.set_step(info);
  auto ready = ready_.begin();
  for (size_t done = 0; done < instructions_.size();) {
    instructions_[done].call(frame);
    ++done;
    for (; on_ready && ready != ready_.end() && ready->first == done; ++ready) on_ready(ready->second);
  }
}

void Plan::meet(Collective& replicas) const {
  for (const Instruction& instruction : instructions_)
    if (instruction.meeting > 0) all_gather_zeros(replicas, instruction.meeting);
}

Frame::Frame(const Plan& plan)
    : plan_(plan),
      arrays_(plan.arenas_.size()),
      buffers_(plan.buffers_.size(), nullptr),
      arguments_(plan.calls_.size()) {
  for (const Plan::Array& column : plan.columns_) columns_.push_back(column.view);
  for (const Plan::Array& output : plan.outputs_) outputs_.push_back(output.view);
}

void Frame::bind(std::span<const SlotArrays> arrays) {
  if (std::equal(arrays.begin(), arrays.end(), arrays_.begin(), arrays_.end())) return;
  arrays_.assign(arrays.begin(), arrays.end());
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const int buffer = static_cast<int>(i);
    buffers_[i] = arrays_[static_cast<size_t>(plan_.buffer(buffer).slot)].arena + plan_.offset_of(buffer);
  }
  for (size_t i = 0; i < columns_.size(); ++i) columns_[i].data = at(plan_.columns_[i].buffer);
  for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i].data = at(plan_.outputs_[i].buffer);
  for (size_t call = 0; call < arguments_.size(); ++call) bind_call(call);
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
  for (const int64_t offset : call.parameters) {
    args.parameters.push_back(slot.values + offset);
    args.weights.push_back(slot.weights + static_cast<size_t>(offset) * element_bytes);
  }
  for (const GradientPlace& place : call.gradients)
    args.diff_parameters.push_back(place.offset >= 0 ? slot.gradients + place.offset
                                                     : static_cast<float*>(at(place.buffer)));
  args.saved = at(call.saved);
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
