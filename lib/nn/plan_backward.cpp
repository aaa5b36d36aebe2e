// The backward half of building a plan: gradients flow from the losses to the parameters, against the order
// of the graph.
#include <algorithm>

#include "nn/plan_builder.h"

namespace dtrain {

/// The layout has the parameters in the order in which this is called. A parameter that several layers have
/// is the first one's, whose backward is the last of theirs.
void PlanBuilder::note_ready(int i) {
  if (node(i).shared_with >= 0) return;
  int64_t end = plan_.ready_.empty() ? 0 : plan_.ready_.back().second;
  const int64_t before = end;
  for (size_t k = 0; k < node(i).parameters.size(); ++k) {
    const ParameterSlice& slice = layout_.slice(i, static_cast<int>(k));
    if (slice.offset < layout_.trained()) end = std::max(end, slice.offset + slice.elements());
  }
  if (end > before) plan_.ready_.emplace_back(plan_.instructions_.size(), end);
}

void PlanBuilder::add_contribution(int v, int buffer) {
  const ValueRef ref = value(v).of;
  state(ref.node).contributions[static_cast<size_t>(ref.output)].push_back(
      {buffer, value(v).layout, value(v).slot});
  ++owners_[buffer];
}

/// A contribution as the value itself lies.
PlanBuilder::Contribution PlanBuilder::bring(const Contribution& contribution, const Value& to) {
  Contribution at = contribution;
  const std::string name = "gradient of " + value_name(to.of);
  const auto move_to = [&](int buffer) {
    release(at.buffer);
    ++owners_[buffer];
    at.buffer = buffer;
  };
  if (at.layout != to.layout) {
    const int buffer = add_buffer(name, at.slot, value_bytes(to.of, at.slot));
    emit_reorder(to.of, at.slot, at.layout, to.layout, at.buffer, buffer);
    move_to(buffer);
    at.layout = to.layout;
  }
  if (at.slot != to.slot) {
    const int buffer = add_buffer(name, to.slot, value_bytes(to.of, to.slot));
    emit_transfer(name, at.buffer, buffer, value_bytes(to.of, to.slot));
    move_to(buffer);
    at.slot = to.slot;
  }
  return at;
}

/// The sum of what the readers of an output gave back, with a fused activation undone unless the layer does
/// that. The buffer returned is owned once more than its other contributions own it.
int PlanBuilder::gather_gradient(int i, size_t output) {
  NodeState& s = state(i);
  std::vector<Contribution>& contributions = s.contributions[output];
  if (contributions.empty()) return -1;
  const Value out = value(s.values[output]);
  for (Contribution& contribution : contributions) contribution = bring(contribution, out);
  const bool activated = output == 0 && !s.layer->requirements().undoes_activation;
  const ActivationSpec activation = activated ? s.activation : ActivationSpec{};
  const bool linear = activation.kind == Activation::linear;
  if (contributions.size() == 1 && linear) return contributions[0].buffer;

  std::vector<int> sources;
  int destination = -1;
  for (const Contribution& contribution : contributions) {
    sources.push_back(contribution.buffer);
    if (release(contribution.buffer)) destination = contribution.buffer;
  }
  if (destination < 0)
    destination = add_buffer("gradient of " + value_name(out.of), out.slot, value_bytes(out.of, out.slot));
  ++owners_[destination];
  const int activations = linear ? -1 : out.buffer;
  std::vector<int> reads = sources;
  reads.push_back(activations);
  std::vector<const void*> pointers(sources.size());
  emit(out.slot, "gradient of " + value_name(out.of) + " sum", std::move(reads), {destination},
       [ops = &ops(out.slot), activation, n = batch_shape(out.of).elements(), sources, pointers, activations,
        destination](Frame& frame) mutable {
         for (size_t k = 0; k < sources.size(); ++k) pointers[k] = frame.at(sources[k]);
         ops->sum_backward(activation, frame.at(activations), pointers, frame.at(destination), n);
       });
  return destination;
}

void PlanBuilder::emit_backward(int i) {
  NodeState& s = state(i);
  std::vector<int> gradients;
  for (size_t k = 0; k < s.values.size(); ++k) gradients.push_back(gather_gradient(i, k));
  if (std::all_of(gradients.begin(), gradients.end(), [](int gradient) { return gradient < 0; }))
    return emit_zero_gradients(i);
  const LayerRequirements& requirements = s.layer->requirements();
  if (!requirements.is_view && !requirements.passes_gradient) return emit_layer_backward(i, gradients);
  // Every input's contribution is this very buffer.
  for (size_t k = 0; k < s.inputs.size(); ++k)
    if (state(node(i).inputs[k].node).needs_gradient) add_contribution(s.inputs[k], gradients[0]);
  release(gradients[0]);
}

void PlanBuilder::emit_layer_backward(int i, const std::vector<int>& gradients) {
  NodeState& s = state(i);
  const LayerRequirements& requirements = s.layer->requirements();
  bool last_owner = false;
  for (size_t k = 0; k < gradients.size(); ++k)
    if (gradients[k] >= 0 && release(gradients[k]) && k == 0) last_owner = true;
  LayerCall& call = call_of(i);
  call.diff_outputs = gradients;
  for (size_t k = 0; k < s.inputs.size(); ++k) {
    int buffer = -1;
    const ValueRef input = node(i).inputs[k];
    if (state(input.node).needs_gradient) {
      const bool in_place = k == 0 && requirements.backward_in_place && last_owner;
      buffer = in_place
                   ? gradients[0]
                   : add_buffer("gradient of " + value_name(input), call.slot, value_bytes(input, call.slot));
    }
    call.diff_inputs.push_back(buffer);
  }
  const bool moves = node(i).has_moving_parameters();
  for (size_t k = 0; k < node(i).parameters.size(); ++k)
    call.gradients.push_back(moves ? gradient_place(i, static_cast<int>(k)) : GradientPlace{});

  std::vector<int> reads = gradients, writes = call.diff_inputs;
  reads.push_back(call.saved);
  if (requirements.backward_reads_outputs)
    for (const int output : s.values) reads.push_back(value(output).buffer);
  if (requirements.backward_reads_inputs)
    for (const int input : s.inputs) reads.push_back(value(input).buffer);
  for (const GradientPlace& place : call.gradients) writes.push_back(place.buffer);
  emit_call(i, false, std::move(reads), std::move(writes));
  for (size_t k = 0; k < s.inputs.size(); ++k)
    if (const int buffer = call_of(i).diff_inputs[k]; buffer >= 0) add_contribution(s.inputs[k], buffer);
  add_shared_gradients(i);
}

/// Right among the gradients, unless several layers have the parameter: then that is for the first that is
/// on its owner's slot, and the others' are added. What is not trained has no place there: the layer, which
/// gives the gradients of all of its parameters or of none, writes that one to where nobody reads it.
GradientPlace PlanBuilder::gradient_place(int i, int index) {
  const ParameterSlice& slice = layout_.slice(i, index);
  const bool own_slot = slot_of(i) == slot_of(slice.node);
  if (has_gradient(slice) && (layout_.users(i) == 1 || (own_slot && gathered_.insert(slice.offset).second)))
    return {.offset = slice.offset};
  const std::string name = "gradient of " + slice.layer + "/" + slice.name;
  return {.buffer = add_buffer(name, slot_of(i), static_cast<size_t>(slice.elements()) * sizeof(float))};
}

void PlanBuilder::add_shared_gradients(int i) {
  for (size_t k = 0; k < node(i).parameters.size(); ++k) {
    int buffer = call_of(i).gradients[k].buffer;
    if (buffer < 0) continue;
    const ParameterSlice& slice = layout_.slice(i, static_cast<int>(k));
    if (!has_gradient(slice)) continue;
    const int slot = slot_of(slice.node);
    const std::string name = plan_.buffer(buffer).name;
    if (plan_.buffer(buffer).slot != slot) {
      const size_t bytes = plan_.buffer(buffer).bytes;
      const int moved = add_buffer(name, slot, bytes);
      emit_transfer(name, buffer, moved, bytes);
      buffer = moved;
    }
    const float kept = gathered_.insert(slice.offset).second ? 0.0f : 1.0f;
    emit(slot, name + " sum", {buffer}, {},
         [ops = &ops(slot), slot, buffer, kept, offset = slice.offset, n = slice.elements()](Frame& frame) {
           ops->scale_add(frame.arrays(slot).gradients + offset, static_cast<const float*>(frame.at(buffer)),
                          1.0f, kept, n);
         });
  }
}

/// Nothing that a loss reads depends on this node: its parameters stay, unless another layer that has them
/// moves them. A statistic stays where the "gradients" of all replicas sum up to itself.
void PlanBuilder::emit_zero_gradients(int i) {
  if (!node(i).trainable || node(i).shared_with >= 0) return;
  for (size_t k = 0; k < node(i).parameters.size(); ++k) {
    const ParameterSlice& slice = layout_.slice(i, static_cast<int>(k));
    if (!has_gradient(slice) || gathered_.contains(slice.offset)) continue;
    const int slot = slot_of(i);
    emit(slot, "gradient of " + slice.layer + "/" + slice.name + " zero", {}, {},
         [ops = &ops(slot), slot, offset = slice.offset, n = slice.elements(),
          is_statistic = slice.moving_average.has_value()](Frame& frame) {
           const SlotArrays& arrays = frame.arrays(slot);
           float* gradient = arrays.gradients + offset;
           if (is_statistic) {
             ops->scale_add(gradient, arrays.values + offset, frame.share(), 0.0f, n);
           } else {
             ops->fill(gradient, 0.0f, n);
           }
         });
  }
}

}  // namespace dtrain
