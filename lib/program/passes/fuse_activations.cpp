#include "program/passes/fuse.h"
#include "program/passes/passes.h"

namespace dtrain {

std::map<ValueRef, int> count_readers(const CompileState& step) {
  std::map<ValueRef, int> readers;
  for (const GraphNode& n : step.graph.nodes)
    for (const ValueRef input : n.inputs) ++readers[input];
  for (int i = 0; i < step.count(); ++i)
    if (step.wants_losses() && step.node(i).activity_penalty()) ++readers[{i, 0}];
  for (const ValueRef output : step.graph.outputs) ++readers[output];
  for (const LossPoint& point : step.loss_points) ++readers[point.value];
  return readers;
}

void fuse_activations(CompileState& step) {
  std::map<ValueRef, int> readers = count_readers(step);
  for (int i = 0; i < step.count(); ++i) {
    const GraphNode& n = step.node(i);
    if (!n.layer) continue;
    const auto activation = n.layer->elementwise();
    if (!activation || !from_output(*activation)) continue;
    const ValueRef input = n.inputs[0];
    const int before = input.node;
    if (input.output != 0 || step.slot_of(before) != step.slot_of(i) || readers[input] != 1) continue;
    NodeState& its = step.state(before);
    if (!step.node(before).layer || its.fused_into >= 0) continue;
    if (its.activation.kind != Activation::linear || !step.node(before).layer->can_fuse(*activation))
      continue;
    step.state(i).fused_into = before;
    its.activation = *activation;
  }
}

}  // namespace dtrain
