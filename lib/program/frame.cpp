#include "program/frame.h"

#include <algorithm>

namespace dtrain {

Frame::Frame(const Plan& plan)
    : plan_(plan),
      arrays_(static_cast<size_t>(plan.slots())),
      memory_(plan.program().values.size()),
      arguments_(plan.program().calls.size()),
      sent_(plan.program().links.size()) {
  for (const ProgramArray& column : plan.program().columns) columns_.push_back(column.view);
  for (const ProgramArray& output : plan.program().outputs) outputs_.push_back(output.view);
  size_t most = 0;
  for (const Instruction& instruction : plan.program().instructions)
    if (const auto* sum = std::get_if<SumGradients>(&instruction.work))
      most = std::max(most, sum->sources.size());
  pointers_.resize(most);
}

void Frame::bind(int slot, const SlotArrays& arrays) {
  SlotArrays& mine = arrays_[static_cast<size_t>(slot)];
  if (mine == arrays) return;
  mine = arrays;
  const Program& program = plan_.program();
  for (size_t i = 0; i < memory_.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    const ProgramValue& value = program.values[id];
    if (value.slot != slot || value.buffer == BufferId::none) continue;
    const ProgramBuffer& buffer = program.buffers[value.buffer];
    memory_[id] = (buffer.is_shared ? mine.shared : mine.arena) + buffer.offset;
  }
  for (size_t i = 0; i < columns_.size(); ++i) columns_[i].data = at(program.columns[i].value);
  for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i].data = at(program.outputs[i].value);
  for (size_t i = 0; i < arguments_.size(); ++i)
    if (const auto call = static_cast<CallId>(i); program.calls[call].slot == slot) bind_call(call);
}

void Frame::bind_call(CallId id) {
  const LayerCall& call = plan_.program().calls[id];
  const SlotArrays& slot = arrays(call.slot);
  const size_t element_bytes = bytes_of(plan_.ops(call.slot).compute_type());
  LayerArguments& args = arguments_[id];
  args = {};
  for (const ValueId value : call.inputs) args.inputs.push_back(at(value));
  for (const ValueId value : call.outputs) args.outputs.push_back(at(value));
  for (const ValueId value : call.masks) args.masks.push_back(static_cast<const uint8_t*>(at(value)));
  for (const ValueId value : call.diff_outputs) args.diff_outputs.push_back(at(value));
  for (const ValueId value : call.diff_inputs) args.diff_inputs.push_back(at(value));
  for (const ParameterPlace& place : call.parameters) {
    const bool is_own = place.offset >= 0;
    args.parameters.push_back(parameter(call.slot, place));
    const std::byte* weights = is_own ? slot.weights : static_cast<const std::byte*>(at(place.weights));
    args.weights.push_back(weights + static_cast<size_t>(is_own ? place.offset : place.at) * element_bytes);
  }
  for (const GradientPlace& place : call.gradients)
    args.diff_parameters.push_back(gradient(call.slot, place));
  args.saved = at(call.saved);
  args.addend = at(call.addend);
  args.scratch = at(call.scratch);
}

std::span<const void* const> Frame::at_all(std::span<const ValueId> values) {
  std::transform(values.begin(), values.end(), pointers_.begin(),
                 [this](ValueId value) { return at(value); });
  return {pointers_.data(), values.size()};
}

const float* Frame::parameter(int slot, const ParameterPlace& place) const {
  return place.offset >= 0 ? arrays(slot).values + place.offset : floats(place.value) + place.at;
}

float* Frame::gradient(int slot, const GradientPlace& place) const {
  const bool has_value = place.value != ValueId::none;
  if (place.offset >= 0 && !(has_value && arrays(slot).accumulates))
    return arrays(slot).gradients + place.offset;
  return has_value ? static_cast<float*>(at(place.value)) + place.at : nullptr;
}

float Frame::share() const {
  return static_cast<float>(static_cast<double>(plan_.batch()) / static_cast<double>(step_.global_batch));
}

const LayerArguments& Frame::arguments(CallId id) {
  LayerArguments& args = arguments_[id];
  const LayerCall& call = plan_.program().calls[id];
  args.seed = step_.seed;
  args.step = &arrays(call.slot).state->now.step;
  args.first_sample = step_.first_sample;
  args.share = call.users == 1 ? share() : share() / static_cast<float>(call.users);
  return args;
}

}  // namespace dtrain
