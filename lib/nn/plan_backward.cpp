// The backward half of building a plan: gradients flow from the losses to the parameters, against the order
// of the graph.
#include <algorithm>

#include "nn/plan_builder.h"

namespace dtrain {

void PlanBuilder::add_contribution(int v, int buffer) {
  NodeState& s = state(value(v).node);
  s.contributions.push_back({buffer, value(v).layout});
  ++owners_[buffer];
}

PlanBuilder::Contribution PlanBuilder::in_layout(const Contribution& contribution, int i, Layout layout) {
  if (contribution.layout == layout) return contribution;
  const int buffer = plan_.arena_.add(value_bytes(i));
  emit_reorder(i, contribution.layout, layout, contribution.buffer, buffer);
  release(contribution.buffer);
  ++owners_[buffer];
  return {buffer, layout};
}

/// The sum of what the readers of node i's value gave back, with a fused activation undone unless the layer
/// does that. The buffer returned is owned once more than its other contributions own it.
int PlanBuilder::gather_gradient(int i) {
  NodeState& s = state(i);
  if (s.contributions.empty()) return -1;
  const Value& out = value(s.value);
  for (Contribution& contribution : s.contributions) contribution = in_layout(contribution, i, out.layout);
  const ActivationSpec activation =
      s.layer->requirements().undoes_activation ? ActivationSpec{} : s.activation;
  if (s.contributions.size() == 1 && activation.kind == Activation::linear) return s.contributions[0].buffer;

  std::vector<int> buffers{-1, activation.kind == Activation::linear ? -1 : out.buffer};
  int destination = -1;
  for (const Contribution& contribution : s.contributions) {
    buffers.push_back(contribution.buffer);
    if (release(contribution.buffer)) destination = contribution.buffer;
  }
  if (destination < 0) destination = plan_.arena_.add(value_bytes(i));
  ++owners_[destination];
  buffers[0] = destination;
  std::vector<const void*> sources(s.contributions.size());
  emit(buffers, [ops = &ops_, activation, n = batch_shape(i).elements(), sources](std::span<void* const> p,
                                                                                  const StepInfo&) mutable {
    for (size_t k = 0; k < sources.size(); ++k) sources[k] = p[k + 2];
    ops->sum_backward(activation, p[1], sources, p[0], n);
  });
  return destination;
}

void PlanBuilder::emit_backward(int i) {
  NodeState& s = state(i);
  const int gradient = gather_gradient(i);
  if (gradient < 0) {
    emit_zero_gradients(i);
    return;
  }
  const LayerRequirements& requirements = s.layer->requirements();
  if (!requirements.is_view && !requirements.passes_gradient) {
    emit_layer_backward(i, gradient);
    return;
  }
  // Every input's contribution is this very buffer.
  for (size_t k = 0; k < s.inputs.size(); ++k)
    if (state(node(i).inputs[k].node).needs_gradient) add_contribution(s.inputs[k], gradient);
  release(gradient);
}

void PlanBuilder::emit_layer_backward(int i, int gradient) {
  NodeState& s = state(i);
  const LayerRequirements& requirements = s.layer->requirements();
  const bool last_owner = release(gradient);
  std::vector<int> diff_inputs;
  for (size_t k = 0; k < s.inputs.size(); ++k) {
    int buffer = -1;
    if (state(node(i).inputs[k].node).needs_gradient) {
      const bool in_place = k == 0 && requirements.backward_in_place && last_owner;
      buffer = in_place ? gradient : plan_.arena_.add(value_bytes(node(i).inputs[k].node));
    }
    diff_inputs.push_back(buffer);
  }
  const bool trainable = node(i).trainable;
  plan_.binders_.push_back([plan = &plan_, args = &s.step->args, gradient, diff_inputs, layout = &layout_, i,
                            trainable, count = node(i).parameters.size()] {
    args->diff_outputs = {plan->at(gradient)};
    args->diff_inputs.clear();
    args->diff_parameters.clear();
    for (const int buffer : diff_inputs) args->diff_inputs.push_back(plan->at(buffer));
    for (size_t k = 0; k < count; ++k)
      args->diff_parameters.push_back(
          trainable ? plan->arrays_.gradients + layout->slice(i, static_cast<int>(k)).offset : nullptr);
  });
  std::vector<int> buffers = diff_inputs;
  buffers.push_back(gradient);
  if (requirements.backward_reads_outputs) buffers.push_back(value(s.value).buffer);
  if (requirements.backward_reads_inputs)
    for (const int input : s.inputs) buffers.push_back(value(input).buffer);
  emit_call(i, false, buffers);
  for (size_t k = 0; k < diff_inputs.size(); ++k)
    if (diff_inputs[k] >= 0) add_contribution(s.inputs[k], diff_inputs[k]);
}

/// Nothing that a loss reads depends on this node: its parameters stay. A statistic stays where the
/// "gradients" of all replicas sum up to itself.
void PlanBuilder::emit_zero_gradients(int i) {
  if (!node(i).trainable) return;
  for (size_t k = 0; k < node(i).parameters.size(); ++k) {
    const ParameterSlice& slice = layout_.slice(i, static_cast<int>(k));
    plan_.instructions_.push_back([plan = &plan_, ops = &ops_, offset = slice.offset, n = slice.elements(),
                                   is_statistic = slice.moving_average.has_value()](const StepInfo& info) {
      float* gradient = plan->arrays_.gradients + offset;
      if (is_statistic) {
        ops->scale_add(gradient, plan->arrays_.values + offset, plan->share(info), 0.0f, n);
      } else {
        ops->fill(gradient, 0.0f, n);
      }
    });
  }
}

}  // namespace dtrain
