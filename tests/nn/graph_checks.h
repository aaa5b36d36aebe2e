// Functions that find nodes of a graph by name, and that compare a graph with its resolved configuration.
#pragma once

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "nn/graph.h"
#include "support/graphs.h"

namespace dtrain::test {

using Names = std::vector<std::string>;

/// Returns the names of all nodes, in order.
inline Names names_of_nodes(const Graph& graph) {
  Names names;
  for (const GraphNode& node : graph.nodes) names.push_back(node.name);
  return names;
}

/// Returns the node with this name.
inline const GraphNode& node_of(const Graph& graph, const std::string& name) {
  return graph.nodes[node_named(graph, name)];
}

/// Returns the names of the nodes that a node reads.
inline Names inputs_of(const Graph& graph, const std::string& name) {
  Names names;
  for (const ValueRef& input : node_of(graph, name).inputs)
    names.push_back(graph.nodes[static_cast<size_t>(input.node)].name);
  return names;
}

/// Checks that Graph::resolved reads back to the same configuration.
inline void check_round_trip(const Graph& graph) {
  const Graph again = graph_from(graph.resolved.to_yaml());
  CHECK(again.resolved.to_yaml() == graph.resolved.to_yaml());
  REQUIRE(again.nodes.size() == graph.nodes.size());
  CHECK(again.inputs == graph.inputs);
  CHECK(again.outputs == graph.outputs);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode &a = graph.nodes[i], &b = again.nodes[i];
    CAPTURE(a.name);
    CHECK(a.name == b.name);
    CHECK(a.kind == b.kind);
    CHECK(a.inputs == b.inputs);
    REQUIRE(a.outputs.size() == b.outputs.size());
    for (size_t k = 0; k < a.outputs.size(); ++k) {
      CHECK(a.outputs[k].shape == b.outputs[k].shape);
      CHECK(a.outputs[k].dtype == b.outputs[k].dtype);
    }
    CHECK(a.trainable == b.trainable);
    CHECK(a.is_activation_of_previous == b.is_activation_of_previous);
    CHECK(a.parameters.size() == b.parameters.size());
    CHECK(a.shared_with == b.shared_with);
    CHECK(a.activity_penalty().l1 == b.activity_penalty().l1);
    CHECK(a.activity_penalty().l2 == b.activity_penalty().l2);
    CHECK(a.device.has_value() == b.device.has_value());
    if (a.device && b.device) CHECK(a.device->id == b.device->id);
    CHECK(a.recompute == b.recompute);
  }
}

}  // namespace dtrain::test
