// Properties of a graph's nodes that training needs and that do not depend on the device.
#pragma once

#include <vector>

#include "nn/graph.h"
#include "ops/specs.h"

namespace dtrain {

struct NodeFlow {
  /// For an activation: the index of the layer that computes the activation together with its own output, if
  /// both nodes are on the same device. -1 if the activation is not fused.
  int fused_into = -1;
  /// For a layer: the activation that is fused into its first output.
  ActivationSpec activation;
  bool needs_gradient = false;  // whether this node or one that it depends on has trained parameters
  // Number of readers of the first output or, if an activation is fused into it, of the activation's output.
  // The model's output counts as a reader.
  int readers = 0;
};

/// Returns the NodeFlow of each node, according to the rules of the passes in lib/program. The plan of a run
/// may fuse other activations, because a loss may read the logits instead of the output of the last
/// activation.
std::vector<NodeFlow> flow_of(const Graph& graph);

}  // namespace dtrain
