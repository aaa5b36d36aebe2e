#include "interop/graph_masks.h"

#include <algorithm>

namespace dtrain {

ValueRef mask_of_input(const GraphNode& node, size_t input) {
  return input < node.masks.size() ? node.masks[input] : ValueRef();
}

bool has_masked_input(const Graph& graph, const GraphNode& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueRef input) { return graph.mask_of(input) != ValueRef(); });
}

bool reads_masks(const GraphNode& node) {
  return std::any_of(node.masks.begin(), node.masks.end(), [](ValueRef mask) { return mask != ValueRef(); });
}

ValueRef mask_of_creator(const Graph& graph, int node) {
  return {node, static_cast<int>(graph.nodes[static_cast<size_t>(node)].outputs.size()) - 1};
}

bool creates_read_mask(const Graph& graph, int node) {
  if (!graph.nodes[static_cast<size_t>(node)].layer->creates_mask()) return false;
  const ValueRef mask = mask_of_creator(graph, node);
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const GraphNode& other) {
    return std::find(other.masks.begin(), other.masks.end(), mask) != other.masks.end();
  });
}

}  // namespace dtrain
