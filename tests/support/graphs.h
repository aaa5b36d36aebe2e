// Graphs from text and from the project's configurations.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include "config/load/load.h"
#include "nn/graph.h"
#include "support/source_dir.h"

namespace dtrain::test {

inline Graph graph_of(const ConfigNode& model, Diagnostics& diagnostics) {
  auto graph = parse_model(model, diagnostics);
  REQUIRE_NOTHROW(diagnostics.throw_if_errors());
  REQUIRE(graph);
  return std::move(*graph);
}

/// Returns the graph of a valid model.
inline Graph graph_from(const std::string& yaml) {
  Diagnostics diagnostics;
  const ConfigNode model = parse_yaml(yaml, "m.yaml", diagnostics);
  return graph_of(model, diagnostics);
}

/// Returns the graph of one of the project's configurations, such as "configs/wide-mlp.yaml".
inline Graph graph_of_config(const std::string& path) {
  Diagnostics diagnostics;
  const ConfigNode config = load_config(source_dir() + "/" + path, {}, diagnostics);
  REQUIRE_NOTHROW(diagnostics.throw_if_errors());
  REQUIRE(config.find("model"));
  return graph_of(*config.find("model"), diagnostics);
}

/// Returns the index of the node with this name.
inline size_t node_named(const Graph& graph, const std::string& name) {
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].name == name) return i;
  FAIL("no node " << name);
  return 0;
}

}  // namespace dtrain::test
