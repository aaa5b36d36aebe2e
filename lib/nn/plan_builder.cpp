// What a plan's builder settles before it emits anything: what is fused, which layout every value has, on
// which slot, and who reads it.
#include "nn/plan_builder.h"

#include <algorithm>

#include <fmt/format.h>

namespace dtrain {

Plan::Plan(const Graph& graph, const ModelLayout& layout, std::span<const Head> heads,
           std::span<Ops* const> ops, std::span<const int> slots, const PlanKey& key,
           const PlanOptions& options)
    : key_(key), arena_bytes_(ops.size()) {
  for (const Ops* slot : ops) element_bytes_.push_back(bytes_of(slot->compute_type()));
  PlanBuilder(*this, graph, layout, heads, ops, slots, options).build();
}

PlanBuilder::PlanBuilder(Plan& plan, const Graph& graph, const ModelLayout& layout,
                         std::span<const Head> heads, std::span<Ops* const> ops, std::span<const int> slots,
                         const PlanOptions& options)
    : plan_(plan),
      graph_(graph),
      layout_(layout),
      heads_(heads),
      ops_(ops),
      slots_(slots),
      options_(options),
      states_(graph.nodes.size()) {}

void PlanBuilder::build() {
  choose_loss_points();
  fuse_activations();
  fuse_sums();
  find_gradient_needs();
  for (int i = 0; i < end(); ++i) prepare(i);
  read_heads();
  plan_recomputing();
  settle_views();

  if (training() && options_.reduces_gradients) plan_buckets();
  emit_all();
  for (int slot = 0; slot < slots(); ++slot) place_buffers(slot);
}

void PlanBuilder::emit_all() {
  place_columns();
  send_parameters();
  for (int i = 0; i < end(); ++i) {
    if (state(i).layer) emit_forward(i);
    send_outputs(i);
  }
  if (!wants_losses()) return emit_outputs();
  phase_ = Phase::loss;
  size_t total = 0;
  for (size_t h = 0; h < heads_.size(); ++h) {
    emit_head(h, total);
    total += static_cast<size_t>(heads_[h].count_totals());
  }
  if (!training()) return;
  phase_ = Phase::backward;
  for (int i = end() - 1; i >= 0; --i) {
    if (!state(i).layer || !state(i).needs_gradient) continue;
    emit_backward(i);
    note_ready(i);
  }
  add_remote_gradients();
  reduce_ready(layout_.whole().with_gradient());
}

/// What only one of a slot's microbatches under way needs at a time, as it lives within a forward or within a
/// backward part, shares one place.
void PlanBuilder::place_buffers(int slot) {
  const auto& instructions = plan_.instructions_;
  const auto is_backward = [](const Instruction& i) { return i.phase == Phase::backward; };
  const auto backward = static_cast<int>(std::find_if(instructions.begin(), instructions.end(), is_backward) -
                                         instructions.begin());
  const bool several = !options_.in_flight.empty() && options_.in_flight[static_cast<size_t>(slot)] > 1;
  Arena frame, shared;
  std::vector<std::pair<PlanBuffer*, int>> placed;
  for (PlanBuffer& buffer : plan_.buffers_) {
    if (buffer.slot != slot || buffer.lifetime.first < 0) continue;
    const Lifetime& life = buffer.lifetime;
    buffer.is_shared = several && (life.last < backward || life.first >= backward) && !buffer.is_sent;
    Arena& arena = buffer.is_shared ? shared : frame;
    placed.emplace_back(&buffer, arena.add(buffer.bytes));
    arena.touch(placed.back().second, life.first);
    arena.touch(placed.back().second, life.last);
  }
  frame.assign();
  shared.assign();
  for (const auto& [buffer, number] : placed)
    buffer->offset = (buffer->is_shared ? shared : frame).offset(number);
  ArenaBytes& bytes = plan_.arena_bytes_[static_cast<size_t>(slot)];
  bytes.frame = frame.bytes();
  bytes.shared = shared.bytes();
}

void PlanBuilder::touch(int buffer, int time) {
  Lifetime& life = plan_.buffers_[static_cast<size_t>(buffer)].lifetime;
  life.first = life.first < 0 ? time : std::min(life.first, time);
  life.last = std::max(life.last, time);
}

void PlanBuilder::keep_to_the_end(int buffer) {
  touch(buffer, Arena::kToTheEnd);
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
  plan_.buffers_.push_back({.name = std::move(name), .slot = slot, .bytes = bytes, .lifetime = {}});
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

std::map<ValueRef, int> PlanBuilder::count_readers() const {
  std::map<ValueRef, int> readers;
  for (const GraphNode& n : graph_.nodes)
    for (const ValueRef input : n.inputs) ++readers[input];
  for (const ValueRef output : graph_.outputs) ++readers[output];
  for (const LossPoint& point : loss_points_) ++readers[point.value];
  return readers;
}

/// An elementwise activation joins the layer before it where that layer can do it on the same slot, nobody
/// else reads that layer's value, and no loss does.
void PlanBuilder::fuse_activations() {
  std::map<ValueRef, int> readers = count_readers();
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

/// Of a sum of two, one is not written: its layer adds the other, where it can, and nobody else reads it.
void PlanBuilder::fuse_sums() {
  std::map<ValueRef, int> readers = count_readers();
  for (int i = 0; i < end(); ++i) {
    const GraphNode& n = node(i);
    if (!n.layer || !n.layer->is_sum() || n.inputs.size() != 2) continue;
    for (const ValueRef input : n.inputs) {
      if (readers[input] != 1 || !can_add(input, i)) continue;
      state(i).summand = input.node;
      state(input.node).added_in = i;
      break;
    }
  }
}

bool PlanBuilder::can_add(ValueRef input, int sum) const {
  const NodeState& its = states_[static_cast<size_t>(input.node)];
  const GraphNode& n = node(input.node);
  return n.layer && input.output == 0 && slot_of(input.node) == slot_of(sum) && its.fused_into < 0 &&
         its.activation.kind == Activation::linear && n.recompute < 0 && node(sum).recompute < 0 &&
         !options_.gathers_parameters &&
         n.layer->can_add(ops(slot_of(sum)), states_[static_cast<size_t>(sum)].activation);
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
  const bool adds = s.added_in >= 0;
  const ActivationSpec& activation = adds ? state(s.added_in).activation : s.activation;
  try {
    plan_.layers_.push_back(n.layer->prepare({ops(slot_of(i)), plan_.batch(), training(), inputs, n.outputs,
                                              layouts, activation, adds, needs_gradient, stream_of(n.name),
                                              n.has_moving_parameters(), replicas_of(i)}));
  } catch (const Unsupported& refusal) {
    throw error_at(n.mark, fmt::format("{} '{}': {} (an output of {}, batches of {})", n.kind, n.name,
                                       refusal.what(), n.outputs[0].shape.str(), plan_.batch()));
  }
  s.layer = plan_.layers_.back().get();
  const LayerRequirements& requirements = s.layer->requirements();
  note_remarks(i, requirements.remarks);
  const bool backward = s.needs_gradient && !requirements.is_view && !requirements.passes_gradient;
  for (size_t k = 0; k < n.inputs.size(); ++k) {
    s.inputs.push_back(value_in(n.inputs[k], requirements.input_layout(k), slot_of(i)));
    read(s.inputs.back(), i, backward && requirements.backward_reads_inputs);
  }
  if (s.summand >= 0)
    for (const int input : state(s.summand).inputs) read(input, i, false);
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

void PlanBuilder::note_remarks(int i, const Remarks& remarks) {
  if (!remarks.warning.empty())
    plan_.warnings_.push_back(fmt::format("{} '{}': {}", node(i).kind, node(i).name, remarks.warning));
  std::vector<std::string>& notes = plan_.notes_;
  if (!remarks.note.empty() && std::find(notes.begin(), notes.end(), remarks.note) == notes.end())
    notes.push_back(remarks.note);
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
  // It is reordered where it was made, and then sent, to be read at any time.
  const int own = value_of(ref);
  const bool crosses = slot != value(own).slot;
  const int from = crosses ? value_in(ref, layout, value(own).slot) : own;
  read(from, crosses ? end() : ref.node + 1, crosses);  // a reorder runs before any reader
  const int made = add_value({.of = ref, .layout = layout, .slot = slot, .made_from = from});
  if (crosses) state(ref.node).sent.push_back(made);
  return made;
}

void PlanBuilder::read(int v, int reader, bool in_backward) {
  if (in_backward) keep_or_recompute(v, reader);
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
  for (int v = static_cast<int>(values_.size()) - 1; v >= 0; --v) {
    const int seen = value(v).view_of;
    if (seen < 0) continue;
    read(seen, value(v).last_read, false);
    if (value(v).read_in_backward) value(seen).read_in_backward = true;
  }
}

/// `reads` and `writes` are all that the call touches of the arenas; -1 is none.
void PlanBuilder::emit(int slot, std::string name, std::vector<int> reads, std::vector<int> writes,
                       std::function<void(Frame&)> call) {
  for (std::vector<int>* buffers : {&reads, &writes}) {
    std::erase(*buffers, -1);
    for (const int number : *buffers) touch(number, now());
  }
  plan_.instructions_.push_back(
      {slot, phase_, std::move(name), std::move(reads), std::move(writes), std::move(call)});
}

}  // namespace dtrain
