// The backward half of building a plan: gradients flow from the losses to the parameters, against the order
// of the graph.
#include <algorithm>

#include "nn/plan_builder.h"

namespace dtrain {

/// The layout has the parameters in the order in which this is called. A parameter that several layers have
/// is the first one's, whose backward is the last of theirs.
void PlanBuilder::note_ready(int i) {
  if (node(i).shared_with >= 0 || slots() > 1) return;
  int64_t end = plan_.ready_.empty() ? 0 : plan_.ready_.back().second;
  const int64_t before = end;
  for (size_t k = 0; k < node(i).parameters.size(); ++k) {
    const ParameterSlice& slice = slice_of(i, k);
    if (slice.offset < layout_of(i).trained()) end = std::max(end, slice.offset + slice.elements());
  }
  if (end == before) return;
  if (options_.reduces_gradients) reduce_ready(end);
  plan_.ready_.emplace_back(plan_.instructions_.size(), end);
}

/// A gradient for another slot is sent at once, as the value itself lies there.
void PlanBuilder::add_contribution(int v, int buffer) {
  const ValueRef ref = value(v).of;
  const Value own = value(value_of(ref));
  Contribution mine{buffer, value(v).layout};
  ++owners_[buffer];
  if (value(v).slot != own.slot) {
    const std::string name = "gradient of " + value_name(ref);
    if (mine.layout != own.layout) {
      mine.buffer = reorder_gradient(ref, value(v).slot, mine.layout, own.layout, buffer);
      release(buffer);
      ++owners_[mine.buffer];
    }
    const int link = emit_send(name, mine.buffer, own.slot);
    release(mine.buffer);
    mine = {-1, own.layout, link};
  }
  state(ref.node).contributions[static_cast<size_t>(ref.output)].push_back(mine);
}

int PlanBuilder::reorder_gradient(ValueRef ref, int slot, Layout from, Layout to, int src) {
  const int dst = add_buffer("gradient of " + value_name(ref), slot, value_bytes(ref, slot));
  emit_reorder(ref, slot, from, to, src, dst);
  return dst;
}

/// The buffer of a contribution, on the value's slot and as the value itself lies, owned once.
int PlanBuilder::bring(const Contribution& contribution, const Value& to) {
  if (contribution.link >= 0) {
    const int buffer = emit_receive("gradient of " + value_name(to.of), contribution.link, to.slot,
                                    value_bytes(to.of, to.slot));
    ++owners_[buffer];
    return buffer;
  }
  if (contribution.layout == to.layout) return contribution.buffer;
  const int buffer = reorder_gradient(to.of, to.slot, contribution.layout, to.layout, contribution.buffer);
  release(contribution.buffer);
  ++owners_[buffer];
  return buffer;
}

/// The sum of what the readers of an output gave back, with a fused activation undone unless the layer does
/// that. The buffer returned is owned once more than its other contributions own it.
int PlanBuilder::gather_gradient(int i, size_t output, const GradientPlace& bias) {
  NodeState& s = state(i);
  const std::vector<Contribution>& contributions = s.contributions[output];
  if (contributions.empty()) return -1;
  const Value out = value(s.values[output]);
  std::vector<int> sources;
  for (const Contribution& contribution : contributions) sources.push_back(bring(contribution, out));
  const bool activated = output == 0 && !s.layer->requirements().undoes_activation;
  const ActivationSpec activation = activated ? s.activation : ActivationSpec{};
  const bool linear = activation.kind == Activation::linear;
  if (sources.size() == 1 && linear) {
    emit_bias_gradient(i, sources[0], bias);
    return sources[0];
  }

  int destination = -1;
  for (const int source : sources)
    if (release(source)) destination = source;
  if (destination < 0)
    destination = add_buffer("gradient of " + value_name(out.of), out.slot, value_bytes(out.of, out.slot));
  ++owners_[destination];
  const int activations = linear ? -1 : out.buffer;
  std::vector<int> reads = sources;
  reads.push_back(activations);
  std::vector<const void*> pointers(sources.size());
  emit(out.slot, "gradient of " + value_name(out.of) + " sum", std::move(reads), {destination, bias.buffer},
       [ops = &ops(out.slot), slot = out.slot, activation, shape = batch_shape(out.of), sources, pointers,
        activations, destination, bias](Frame& frame) mutable {
         for (size_t k = 0; k < sources.size(); ++k) pointers[k] = frame.at(sources[k]);
         const void* saved = frame.at(activations);
         void* sum = frame.at(destination);
         float* diff_bias = frame.gradient(slot, bias);
         if (!diff_bias) return ops->sum_backward(activation, saved, pointers, sum, shape.elements());
         const int64_t columns = shape.back();
         ops->sum_backward_bias(activation, saved, pointers, sum, diff_bias, shape.elements() / columns,
                                columns);
       });
  return destination;
}

void PlanBuilder::emit_bias_gradient(int i, int gradient, const GradientPlace& bias) {
  if (bias.offset < 0 && bias.buffer < 0) return;
  const ValueRef output{i, 0};
  const int slot = slot_of(i);
  emit(slot, "gradient of " + value_name(output) + " bias", {gradient}, {bias.buffer},
       [ops = &ops(slot), slot, gradient, bias, shape = batch_shape(output)](Frame& frame) {
         const int64_t columns = shape.back();
         ops->column_sum(frame.gradient(slot, bias), frame.at(gradient), shape.elements() / columns, columns);
       });
}

void PlanBuilder::emit_backward(int i) {
  if (node(i).recompute >= 0) recompute_segment(i);
  NodeState& s = state(i);
  if (std::all_of(s.contributions.begin(), s.contributions.end(),
                  [](const std::vector<Contribution>& given) { return given.empty(); }))
    return emit_zero_gradients(i);
  const LayerRequirements& requirements = s.layer->requirements();
  std::vector<GradientPlace> places = gradient_places(i);
  const auto bias = requirements.bias < 0 ? GradientPlace{} : places[static_cast<size_t>(requirements.bias)];
  std::vector<int> gradients;
  for (size_t k = 0; k < s.values.size(); ++k)
    gradients.push_back(gather_gradient(i, k, k == 0 ? bias : GradientPlace{}));
  if (!requirements.is_view && !requirements.passes_gradient)
    return emit_layer_backward(i, gradients, std::move(places));
  // Every input's contribution is this very buffer.
  for (size_t k = 0; k < s.inputs.size(); ++k)
    if (state(node(i).inputs[k].node).needs_gradient) add_contribution(s.inputs[k], gradients[0]);
  release(gradients[0]);
}

void PlanBuilder::emit_layer_backward(int i, const std::vector<int>& gradients,
                                      std::vector<GradientPlace> places) {
  NodeState& s = state(i);
  const LayerRequirements& requirements = s.layer->requirements();
  bool last_owner = false;
  for (size_t k = 0; k < gradients.size(); ++k)
    if (gradients[k] >= 0 && release(gradients[k]) && k == 0) last_owner = true;
  if (options_.gathers_parameters && !node(i).parameters.empty()) {
    // What was gathered for the forward call has been freed.
    LayerCall again = call_of(i);
    again.parameters = parameter_places(i);
    s.call = static_cast<int>(plan_.calls_.size());
    plan_.calls_.push_back(std::move(again));
  }
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
  call.gradients = std::move(places);

  std::vector<int> reads = gradients, writes = call.diff_inputs;
  reads.push_back(call.saved);
  if (requirements.backward_reads_outputs)
    for (const int output : s.values) reads.push_back(value(output).buffer);
  if (requirements.backward_reads_inputs)
    for (const int input : s.inputs) reads.push_back(value(input).buffer);
  for (const GradientPlace& place : call.gradients) writes.push_back(place.buffer);
  add_parameters(call, reads);
  emit_call(i, false, std::move(reads), std::move(writes));
  for (size_t k = 0; k < s.inputs.size(); ++k)
    if (const int buffer = call_of(i).diff_inputs[k]; buffer >= 0) add_contribution(s.inputs[k], buffer);
  add_shared_gradients(i);
}

std::vector<GradientPlace> PlanBuilder::gradient_places(int i) {
  std::vector<GradientPlace> places(node(i).parameters.size());
  if (!node(i).has_moving_parameters()) return places;
  for (size_t k = 0; k < places.size(); ++k) places[k] = gradient_place(i, static_cast<int>(k));
  return places;
}

/// Right among the gradients, unless several layers have the parameter: then that is for the first that is
/// on its owner's slot, and the others' are added. So are those of later microbatches. What is not trained
/// has no place there: the layer, which gives the gradients of all of its parameters or of none, writes that
/// one to where nobody reads it.
GradientPlace PlanBuilder::gradient_place(int i, int index) {
  const ParameterSlice& slice = slice_of(i, static_cast<size_t>(index));
  const bool own_slot = slot_of(i) == layout_.owner_slot(i);
  GradientPlace place;
  if (has_gradient(i, slice) && own_slot && gathered_.insert(&slice).second) {
    place = own_place(slice);
    if (place.buffer >= 0 || !options_.accumulates) return place;
  }
  const std::string name = "gradient of " + slice.path();
  place.buffer = add_buffer(name, slot_of(i), static_cast<size_t>(slice.elements()) * sizeof(float));
  return place;
}

void PlanBuilder::add_shared_gradients(int i) {
  for (size_t k = 0; k < node(i).parameters.size(); ++k) {
    const auto [offset, buffer, at] = call_of(i).gradients[k];
    const ParameterSlice& slice = slice_of(i, k);
    if (buffer < 0 || !has_gradient(i, slice) || is_bucket(buffer)) continue;
    const int slot = layout_.owner_slot(i);
    if (offset >= 0) {
      emit(slot, plan_.buffer(buffer).name + " accumulate", {buffer}, {},
           [ops = &ops(slot), slot, offset = offset, buffer = buffer, n = slice.elements()](Frame& frame) {
             const SlotArrays& arrays = frame.arrays(slot);
             if (!arrays.accumulates) return;
             ops->scale_add(arrays.gradients + offset, static_cast<const float*>(frame.at(buffer)), 1.0f,
                            1.0f, n);
           });
    } else if (slot == slot_of(i)) {
      add_shared_gradient(slot, slice, buffer);
    } else {
      remote_gradients_.push_back({emit_send(plan_.buffer(buffer).name, buffer, slot), &slice, slot});
    }
  }
}

void PlanBuilder::add_shared_gradient(int slot, const ParameterSlice& slice, int buffer) {
  const bool is_first = gathered_.insert(&slice).second;
  const GradientPlace place = own_place(slice);
  emit(slot, plan_.buffer(buffer).name + " sum", {buffer}, {place.buffer},
       [ops = &ops(slot), slot, buffer, is_first, place, n = slice.elements()](Frame& frame) {
         const float kept = is_first && !frame.arrays(slot).accumulates ? 0.0f : 1.0f;
         ops->scale_add(frame.gradient(slot, place), static_cast<const float*>(frame.at(buffer)), 1.0f, kept,
                        n);
       });
}

/// At the end, so that no slot waits for another's gradients while it has its own to compute.
void PlanBuilder::add_remote_gradients() {
  for (const RemoteGradient& gradient : remote_gradients_) {
    const ParameterSlice& slice = *gradient.slice;
    const int buffer = emit_receive("gradient of " + slice.path(), gradient.link, gradient.slot,
                                    static_cast<size_t>(slice.elements()) * sizeof(float));
    add_shared_gradient(gradient.slot, slice, buffer);
  }
}

/// Nothing that a loss reads depends on this node: its parameters stay, unless another layer that has them
/// moves them. A statistic stays where the "gradients" of all replicas sum up to itself.
void PlanBuilder::emit_zero_gradients(int i) {
  if (!node(i).trainable || node(i).shared_with >= 0) return;
  for (size_t k = 0; k < node(i).parameters.size(); ++k) {
    const ParameterSlice& slice = slice_of(i, k);
    if (!has_gradient(i, slice) || !gathered_.insert(&slice).second) continue;
    const int slot = slot_of(i);
    const GradientPlace place = own_place(slice);
    const bool is_statistic = slice.moving_average.has_value();
    const ParameterPlace old = is_statistic ? parameter_places(i)[k] : ParameterPlace{};
    emit(slot, "gradient of " + slice.path() + " zero", {old.buffer}, {place.buffer},
         [ops = &ops(slot), slot, place, old, n = slice.elements(), is_statistic](Frame& frame) {
           float* gradient = frame.gradient(slot, place);
           const bool accumulates = frame.arrays(slot).accumulates;
           if (!is_statistic) return accumulates ? void() : ops->fill(gradient, 0.0f, n);
           const float* values = old.offset >= 0 ? frame.arrays(slot).values + old.offset
                                                 : static_cast<const float*>(frame.at(old.buffer)) + old.at;
           ops->scale_add(gradient, values, frame.share(), accumulates ? 1.0f : 0.0f, n);
         });
  }
}

}  // namespace dtrain
