#include <utility>

#include "program/passes/passes.h"

namespace dtrain {

void choose_loss_points(CompileState& step) {
  for (LossPoint& point : step.loss_points) {
    const GraphNode& n = step.node(point.value.node);
    if (!n.layer || !(n.layer->is_softmax() || n.layer->elementwise())) continue;
    if (auto loss = point.loss->before(*n.layer)) point = {n.inputs[0], std::move(loss)};
  }
}

}  // namespace dtrain
