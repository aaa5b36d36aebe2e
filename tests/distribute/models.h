// Graphs for tests of lib/train that need no run.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include "config/load/load.h"
#include "nn/graph.h"
#include "source_dir.h"

namespace dtrain::testing {

inline Graph graph_of(const ConfigNode& model, Diagnostics& diagnostics) {
  auto graph = parse_model(model, diagnostics);
  REQUIRE_NOTHROW(diagnostics.throw_if_errors());
  REQUIRE(graph);
  return std::move(*graph);
}

/// Builds the graph of a model from valid text.
inline Graph graph_from(const std::string& yaml) {
  Diagnostics diagnostics;
  const ConfigNode model = parse_yaml(yaml, "m.yaml", diagnostics);
  return graph_of(model, diagnostics);
}

/// Builds the graph of one of the project's configurations: "configs/wide-mlp.yaml".
inline Graph graph_of_config(const std::string& path) {
  Diagnostics diagnostics;
  const ConfigNode config = load_config(test::source_dir() + "/" + path, {}, diagnostics);
  REQUIRE_NOTHROW(diagnostics.throw_if_errors());
  return graph_of(*config.find("model"), diagnostics);
}

inline size_t node_named(const Graph& graph, const std::string& name) {
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].name == name) return i;
  FAIL("no node " << name);
  return 0;
}

}  // namespace dtrain::testing
