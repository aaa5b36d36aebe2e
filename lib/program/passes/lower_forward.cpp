#include "program/passes/passes.h"

namespace dtrain {

namespace {

using Kind = ProgramValue::Kind;

ValueId add_column(CompileState& step, const TensorSpec& spec, ValueId value) {
  step.program.columns.push_back({value, {nullptr, spec.shape.prepended(step.batch()), spec.dtype}});
  return value;
}

/// Declares the columns, which contain the batch before the first instruction runs.
void add_columns(CompileState& step) {
  Program& program = step.program;
  for (const int input : step.graph.inputs) {
    const ValueRef ref{input, 0};
    step.state(input).values = {add_column(
        step, step.graph.spec(ref), step.add_value(Kind::column, ref, step.slot_of(input), Layout::plain))};
  }
  program.input_columns = program.columns.size();
  if (!step.wants_losses()) return;
  const auto elements = [&](const TensorSpec& spec) {
    return static_cast<size_t>(step.batch() * spec.shape.elements());
  };
  for (const Head& head : step.heads)
    add_column(
        step, head.target,
        step.add_array(Kind::column, "target of " + step.name_of(head.output), step.slot_of(head.output.node),
                       elements(head.target) * bytes_of(head.target.dtype)));
  if (const auto& weights = step.heads[0].weights)
    add_column(step, *weights,
               step.add_array(Kind::column, "weights", step.slot_of(step.heads[0].output.node),
                              elements(*weights) * sizeof(float)));
}

/// Adds the activity penalties of the node's outputs to the entry `total` of the totals. These instructions
/// follow the node, because a later layer may overwrite its outputs.
void lower_activity_penalty(CompileState& step, int i, size_t total) {
  const GraphNode& n = step.node(i);
  if (!step.wants_losses() || !n.activity_penalty()) return;
  for (int k = 0; k < static_cast<int>(n.readable_outputs()); ++k)
    step.program.instructions.push_back({step.slot_of(i), Phase::forward, static_cast<NodeId>(i),
                                         step.name_of({i, k}) + " penalty",
                                         AddActivityPenalty{.value = step.value_of({i, k}),
                                                            .penalty = n.activity_penalty(),
                                                            .elements = step.batch_shape({i, k}).elements(),
                                                            .total = total}});
}

/// Returns the addend of a sum that is fused into the layer of one of its terms. The addend is the other
/// term.
ValueId addend_of(const CompileState& step, int sum) {
  const std::vector<ValueRef>& inputs = step.node(sum).inputs;
  return step.value_of(inputs[0].node == step.state(sum).summand ? inputs[1] : inputs[0]);
}

/// Returns the call that computes the outputs of node i. `called`: the node whose layer is called. If i is a
/// sum that is fused into another node's layer, this is the other node; otherwise it is i.
LayerCall forward_call(CompileState& step, int i, int called) {
  const GraphNode& n = step.node(called);
  const LayerRequirements& requirements = step.state(called).requirements;
  LayerCall call;
  call.node = static_cast<NodeId>(called);
  call.slot = step.slot_of(i);
  call.users = step.layout.whole().users(called);
  for (const ValueRef input : n.inputs) call.inputs.push_back(step.value_of(input));
  for (const ValueRef mask : n.masks)
    call.masks.push_back(mask == ValueRef() ? ValueId::none : step.value_of(mask));
  call.outputs = step.state(i).values;
  if (called != i) call.addend = addend_of(step, i);
  if (requirements.saved_bytes)
    call.saved = step.add_array(Kind::saved, "saved by " + n.name, call.slot, requirements.saved_bytes);
  if (requirements.scratch_bytes)
    call.scratch =
        step.add_array(Kind::scratch, "scratch of " + n.name, call.slot, requirements.scratch_bytes);
  for (size_t k = 0; k < n.parameters.size(); ++k)
    call.parameters.push_back({.offset = step.slice_of(called, k).offset});
  return call;
}

void lower_node(CompileState& step, int i) {
  Program& program = step.program;
  NodeState& s = step.state(i);
  const GraphNode& n = step.node(i);
  const int slot = step.slot_of(i);
  for (size_t k = 0; k < n.outputs.size(); ++k)
    s.values.push_back(
        step.add_value(Kind::activation, {i, static_cast<int>(k)}, slot, s.requirements.output_layout(k)));
  if (s.added_in >= 0) return;
  const auto id = static_cast<NodeId>(i);
  if (s.requirements.is_view) {
    program.instructions.push_back({slot, Phase::forward, id, n.name + " view",
                                    PassOn{.from = step.value_of(n.inputs[0]), .to = s.values[0]}});
    return;
  }
  const int called = s.summand >= 0 ? s.summand : i;
  NodeState& its = step.state(called);
  its.forward = program.calls.add(forward_call(step, i, called));
  program.instructions.push_back(
      {slot, Phase::forward, id, step.node(called).name + " forward",
       LayerForward{.call = its.forward, .gathered = its.requirements.forward_gathered}});
}

}  // namespace

void lower_forward(CompileState& step) {
  add_columns(step);
  const size_t penalty_total = step.wants_losses() ? count_totals(step.graph, step.heads) - 1 : 0;
  for (int i = 0; i < step.count(); ++i) {
    NodeState& s = step.state(i);
    if (s.fused_into >= 0) {
      s.values = step.state(s.fused_into).values;
    } else if (s.is_prepared) {
      lower_node(step, i);
    }
    if (s.is_prepared || s.fused_into >= 0) lower_activity_penalty(step, i, penalty_total);
  }
  if (step.wants_losses()) return;
  for (const ValueRef output : step.graph.outputs)
    step.program.outputs.push_back(
        {step.value_of(output), {nullptr, step.batch_shape(output), step.graph.spec(output).dtype}});
}

}  // namespace dtrain
