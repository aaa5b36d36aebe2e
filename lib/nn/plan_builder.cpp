// What a plan's builder settles before it emits anything: what is fused, which layout every value has, on
// which slot, and who reads it.
#include "nn/plan_builder.h"

#include <algorithm>

#include <fmt/format.h>

namespace dtrain {

Plan::Plan(const Graph& graph, const ParameterLayout& layout, std::span<const Head> heads,
           std::span<Ops* const> ops, std::span<const int> slots, const PlanKey& key, Collective* replicas)
    : key_(key), arenas_(ops.size()) {
  for (const Ops* slot : ops) element_bytes_.push_back(bytes_of(slot->compute_type()));
  PlanBuilder(*this, graph, layout, heads, ops, slots, replicas).build();
  for (Arena& arena : arenas_) arena.assign();
}

PlanBuilder::PlanBuilder(Plan& plan, const Graph& graph, const ParameterLayout& layout,
                         std::span<const Head> heads, std::span<Ops* const> ops, std::span<const int> slots,
                         Collective* replicas)
    : plan_(plan),
      graph_(graph),
      layout_(layout),
      heads_(heads),
      ops_(ops),
      slots_(slots),
      replicas_(replicas),
      states_(graph.nodes.size()) {}

void PlanBuilder::build() {
  choose_loss_points();
  fuse_activations();
  find_gradient_needs();
  for (int i = 0; i < end(); ++i) prepare(i);
  read_heads();
  settle_views();

  place_columns();
  for (int i = 0; i < end(); ++i)
    if (state(i).layer) emit_forward(i);
  if (!wants_losses()) return emit_outputs();
  phase_ = Phase::loss;
  size_t total = 0;
  for (size_t h = 0; h < heads_.size(); ++h) {
    emit_head(h, total);
    total += static_cast<size_t>(heads_[h].totals());
  }
  if (!training()) return;
  phase_ = Phase::backward;
  for (int i = end() - 1; i >= 0; --i) {
    if (!state(i).layer || !state(i).needs_gradient) continue;
    emit_backward(i);
    note_ready(i);
  }
}

/// Of an output, or its gradient.
size_t PlanBuilder::value_bytes(ValueRef ref, int slot) const {
  const DType type = graph_.spec(ref).dtype;
  const size_t element = type == DType::float32 ? bytes_of(ops(slot).compute_type()) : bytes_of(type);
  return static_cast<size_t>(batch_shape(ref).elements()) * element;
}

std::string PlanBuilder::value_name(ValueRef ref) const {
  const std::string& name = node(ref.node).name;
  return node(ref.node).outputs.size() == 1 ? name : fmt::format("{}:{}", name, ref.output);
}

int PlanBuilder::add_buffer(std::string name, int slot, size_t bytes) {
  const int in_arena = plan_.arenas_[static_cast<size_t>(slot)].add(bytes);
  plan_.buffers_.push_back({std::move(name), slot, in_arena, bytes});
  return static_cast<int>(plan_.buffers_.size()) - 1;
}

void PlanBuilder::choose_loss_points() {
  if (!wants_losses()) return;
  for (const Head& head : heads_) {
    loss_points_.push_back({head.output, head.loss});
    const GraphNode& n = node(head.output.node);
    if (!n.layer || !(n.layer->is_softmax() || n.layer->elementwise())) continue;
    if (auto loss = head.loss->before(*n.layer)) loss_points_.back() = {n.inputs[0], std::move(loss)};
  }
}

/// An elementwise activation joins the layer before it where that layer can do it on the same slot, nobody
/// else reads that layer's value, and no loss does.
void PlanBuilder::fuse_activations() {
  std::map<ValueRef, int> readers;
  for (const GraphNode& n : graph_.nodes)
    for (const ValueRef input : n.inputs) ++readers[input];
  for (const ValueRef output : graph_.outputs) ++readers[output];
  for (const LossPoint& point : loss_points_) ++readers[point.value];
  for (int i = 0; i < end(); ++i) {
    const GraphNode& n = node(i);
    if (!n.layer) continue;
    const auto activation = n.layer->elementwise();
    if (!activation || !from_output(*activation)) continue;
    const ValueRef input = n.inputs[0];
    const int before = input.node;
    if (input.output != 0 || slot_of(before) != slot_of(i) || readers[input] != 1) continue;
    if (!node(before).layer || state(before).fused_into >= 0) continue;
    if (state(before).activation.kind != Activation::linear || !node(before).layer->can_fuse(*activation))
      continue;
    state(i).fused_into = before;
    state(before).activation = *activation;
  }
}

void PlanBuilder::find_gradient_needs() {
  if (!training()) return;
  for (int i = 0; i < end(); ++i) {
    const GraphNode& n = node(i);
    state(i).needs_gradient = n.has_moving_parameters();
    for (const ValueRef input : n.inputs)
      if (state(input.node).needs_gradient) state(i).needs_gradient = true;
  }
}

/// Prepares a node's layer and notes what it reads. The values that it reads exist: nodes come after their
/// inputs.
void PlanBuilder::prepare(int i) {
  const GraphNode& n = node(i);
  NodeState& s = state(i);
  s.contributions.resize(n.outputs.size());
  if (s.fused_into >= 0) {
    s.values = state(s.fused_into).values;
  } else if (!n.layer) {
    s.values = {add_value({.of = {i, 0}, .slot = slot_of(i)})};
  } else {
    prepare_layer(i);
  }
}

void PlanBuilder::prepare_layer(int i) {
  const GraphNode& n = node(i);
  NodeState& s = state(i);
  std::vector<TensorSpec> inputs;
  std::vector<Layout> layouts;
  std::vector<bool> needs_gradient;
  for (const ValueRef input : n.inputs) {
    inputs.push_back(graph_.spec(input));
    layouts.push_back(value(value_of(input)).layout);
    needs_gradient.push_back(state(input.node).needs_gradient);
  }
  try {
    plan_.layers_.push_back(n.layer->prepare({ops(slot_of(i)), plan_.batch(), training(), inputs, n.outputs,
                                              layouts, s.activation, needs_gradient, stream_of(n.name),
                                              n.has_moving_parameters(), replicas_}));
  } catch (const Unsupported& refusal) {
    throw error_at(n.mark, fmt::format("{} '{}': {} (an output of {}, batches of {})", n.kind, n.name,
                                       refusal.what(), n.outputs[0].shape.str(), plan_.batch()));
  }
  s.layer = plan_.layers_.back().get();
  const LayerRequirements& requirements = s.layer->requirements();
  const bool backward = s.needs_gradient && !requirements.is_view && !requirements.passes_gradient;
  for (size_t k = 0; k < n.inputs.size(); ++k) {
    s.inputs.push_back(value_in(n.inputs[k], requirements.input_layout(k), slot_of(i)));
    read(s.inputs.back(), i, backward && requirements.backward_reads_inputs);
  }
  for (size_t k = 0; k < n.outputs.size(); ++k)
    s.values.push_back(add_value({.of = {i, static_cast<int>(k)},
                                  .layout = requirements.output_layout(k),
                                  .slot = slot_of(i),
                                  .view_of = requirements.is_view ? s.inputs[0] : -1}));
  if (backward && requirements.backward_reads_outputs)
    for (const int output : s.values) read(output, i, true);
  const bool undone_here = s.activation.kind != Activation::linear && !requirements.undoes_activation;
  if (s.needs_gradient && undone_here) read(s.values[0], i, true);
}

int PlanBuilder::add_value(const Value& made) {
  const int number = static_cast<int>(values_.size());
  values_.push_back(made);
  values_in_[{made.of, made.layout, made.slot}] = number;
  return number;
}

int PlanBuilder::value_in(ValueRef ref, Layout layout, int slot) {
  if (state(ref.node).fused_into >= 0) ref = {state(ref.node).fused_into, 0};
  const auto found = values_in_.find({ref, layout, slot});
  if (found != values_in_.end()) return found->second;
  // It is reordered where it was made, and then transferred.
  const int own = value_of(ref);
  const int from = slot == value(own).slot ? own : value_in(ref, layout, value(own).slot);
  read(from, ref.node + 1, false);  // by what makes this value, which runs before any reader
  return add_value({.of = ref, .layout = layout, .slot = slot, .made_from = from});
}

void PlanBuilder::read(int v, int reader, bool in_backward) {
  if (in_backward) value(v).read_in_backward = true;
  // A value that is made from another one is made at its first reader.
  for (; v >= 0; v = value(v).made_from) value(v).last_read = std::max(value(v).last_read, reader);
}

void PlanBuilder::read_heads() {
  if (!wants_losses()) {
    for (const ValueRef output : graph_.outputs)
      read(value_in(output, Layout::plain, slot_of(output.node)), end(), false);
    return;
  }
  for (size_t h = 0; h < heads_.size(); ++h) {
    const ValueRef output = heads_[h].output;
    read(value_in(loss_points_[h].value, Layout::plain, slot_of(output.node)), end(), false);
    if (!heads_[h].metrics.empty()) read(value_in(output, Layout::plain, slot_of(output.node)), end(), false);
  }
}

int PlanBuilder::root(int v) const {
  while (values_[static_cast<size_t>(v)].view_of >= 0) v = values_[static_cast<size_t>(v)].view_of;
  return v;
}

/// Reads of a view are reads of the memory that it looks at.
void PlanBuilder::settle_views() {
  for (int v = static_cast<int>(values_.size()) - 1; v >= 0; --v)
    if (value(v).view_of >= 0) read(value(v).view_of, value(v).last_read, value(v).read_in_backward);
}

/// `reads` and `writes` are all that the call touches of the arenas; -1 is none.
void PlanBuilder::emit(int slot, std::string name, std::vector<int> reads, std::vector<int> writes,
                       std::function<void(Frame&)> call) {
  for (std::vector<int>* buffers : {&reads, &writes}) {
    std::erase(*buffers, -1);
    for (const int number : *buffers) {
      const PlanBuffer& touched = plan_.buffer(number);
      plan_.arenas_[static_cast<size_t>(touched.slot)].touch(touched.in_arena, now());
    }
  }
  plan_.instructions_.push_back(
      {slot, phase_, std::move(name), std::move(reads), std::move(writes), std::move(call)});
}

}  // namespace dtrain
