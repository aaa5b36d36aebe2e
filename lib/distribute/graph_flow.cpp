#include "distribute/graph_flow.h"

#include <algorithm>

namespace dtrain {

namespace {

void count_readers(const Graph& graph, std::vector<NodeFlow>& flow) {
  const auto count = [&](ValueRef value) {
    if (value.output == 0) ++flow[static_cast<size_t>(value.node)].readers;
  };
  for (const GraphNode& node : graph.nodes)
    for (const ValueRef input : node.inputs) count(input);
  for (const ValueRef output : graph.outputs) count(output);
}

void fuse(const Graph& graph, size_t i, std::vector<NodeFlow>& flow) {
  const GraphNode& node = graph.nodes[i];
  const auto activation = node.layer ? node.layer->elementwise() : std::nullopt;
  if (!activation || !from_output(*activation)) return;
  const ValueRef input = node.inputs[0];
  const auto before = static_cast<size_t>(input.node);
  NodeFlow& layer = flow[before];
  if (input.output != 0 || layer.readers != 1 || !graph.nodes[before].layer) return;
  if (layer.fused_into >= 0 || layer.activation.kind != Activation::linear) return;
  if (!graph.nodes[before].layer->can_fuse(*activation)) return;
  flow[i].fused_into = input.node;
  layer.activation = *activation;
  layer.readers = flow[i].readers;
}

}  // namespace

std::vector<NodeFlow> flow_of(const Graph& graph) {
  std::vector<NodeFlow> flow(graph.nodes.size());
  count_readers(graph, flow);
  for (size_t i = 0; i < flow.size(); ++i) {
    fuse(graph, i, flow);
    const GraphNode& node = graph.nodes[i];
    flow[i].needs_gradient = node.has_moving_parameters() ||
                             std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueRef input) {
                               return flow[static_cast<size_t>(input.node)].needs_gradient;
                             });
  }
  return flow;
}

}  // namespace dtrain
