#include "program/passes/passes.h"

namespace dtrain {

void find_gradients(CompileState& step) {
  if (!step.training()) return;
  for (int i = 0; i < step.count(); ++i) {
    const GraphNode& n = step.node(i);
    bool& needed = step.state(i).needs_gradient;
    needed = n.has_moving_parameters();
    for (const ValueRef input : n.inputs)
      if (step.state(input.node).needs_gradient) needed = true;
  }
}

}  // namespace dtrain
