// What training does with the nodes of a graph, as far as it can be told without a device.
#pragma once

#include <vector>

#include "nn/graph.h"
#include "ops/specs.h"

namespace dtrain {

struct NodeFlow {
  /// The layer that computes this activation with its own output, if it lies on the same device; -1: none.
  int fused_into = -1;
  /// The activation that this layer computes with its first output.
  ActivationSpec activation;
  bool needs_gradient = false;  // something before it, or it itself, is trained
  int readers = 0;              // of its first output behind the activation; the model's output is one, too
};

/// By node, by the rules of PlanBuilder. A plan may know better: a loss may start before a last activation.
std::vector<NodeFlow> flow_of(const Graph& graph);

}  // namespace dtrain
