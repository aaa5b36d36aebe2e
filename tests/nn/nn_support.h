// Graphs from text, for the tests of this folder.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include "config/load.h"
#include "nn/graph.h"

namespace dtrain {

/// The graph of a model that must be right.
inline Graph good_graph(const std::string& yaml) {
  Diagnostics diagnostics;
  auto graph = parse_model(parse_yaml(yaml, "m.yaml", diagnostics), diagnostics);
  REQUIRE_NOTHROW(diagnostics.throw_if_errors());
  REQUIRE(graph);
  return std::move(*graph);
}

/// What is wrong with a model, as it is shown; "" where nothing is.
inline std::string model_errors(const std::string& yaml) {
  Diagnostics diagnostics;
  const auto graph = parse_model(parse_yaml(yaml, "m.yaml", diagnostics), diagnostics);
  CHECK(graph.has_value() != diagnostics.has_errors());
  try {
    diagnostics.throw_if_errors();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace dtrain
