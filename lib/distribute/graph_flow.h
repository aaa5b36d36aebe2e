// Device-independent facts about how training uses the nodes of a graph.
#pragma once

#include <vector>

#include "nn/graph.h"
#include "ops/specs.h"

namespace dtrain {

struct NodeFlow {
  /// For an activation: the layer that computes it together with the layer's own output, if both are on the
  /// same device; otherwise -1.
  int fused_into = -1;
  /// The activation that is fused into this layer's first output.
  ActivationSpec activation;
  bool needs_gradient = false;  // whether this node or one that it depends on has trained parameters
  // Number of readers of the first output (after the fused activation), including the model's output.
  int readers = 0;
};

/// Returns the flow of each node, by the rules of the passes in lib/program. A plan may differ: a loss may
/// take the value before the last activation.
std::vector<NodeFlow> flow_of(const Graph& graph);

}  // namespace dtrain
