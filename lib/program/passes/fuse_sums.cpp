#include "program/passes/fuse.h"
#include "program/passes/passes.h"

namespace dtrain {

namespace {

/// Returns true if the layer of `input` can also compute the sum that reads `input`. In this case, the call
/// of this layer replaces the call of the sum.
bool can_add(const CompileState& step, std::span<Ops* const> ops, ValueRef input, int sum) {
  const NodeState& its = step.state(input.node);
  const GraphNode& n = step.node(input.node);
  const int slot = step.slot_of(sum);
  return n.layer && input.output == 0 && step.slot_of(input.node) == slot && its.fused_into < 0 &&
         its.activation.kind == Activation::linear && n.recompute < 0 && step.node(sum).recompute < 0 &&
         !step.options.gathers_parameters &&
         n.layer->can_add(*ops[static_cast<size_t>(slot)], step.state(sum).activation);
}

}  // namespace

void fuse_sums(CompileState& step, std::span<Ops* const> ops) {
  std::map<ValueRef, int> readers = count_readers(step);
  for (int i = 0; i < step.count(); ++i) {
    const GraphNode& n = step.node(i);
    if (!n.layer || !n.layer->is_sum() || n.inputs.size() != 2) continue;
    for (const ValueRef input : n.inputs) {
      if (readers[input] != 1 || !can_add(step, ops, input, i)) continue;
      step.state(i).summand = input.node;
      step.state(input.node).added_in = i;
      break;
    }
  }
}

}  // namespace dtrain
