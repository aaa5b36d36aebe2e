// Helpers for the tests in this folder: graphs from text.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include "config/load/load.h"
#include "nn/graph.h"

namespace dtrain {

/// Returns the graph of a valid model.
inline Graph good_graph(const std::string& yaml) {
  Diagnostics diagnostics;
  auto graph = parse_model(parse_yaml(yaml, "m.yaml", diagnostics), diagnostics);
  REQUIRE_NOTHROW(diagnostics.throw_if_errors());
  REQUIRE(graph);
  return std::move(*graph);
}

/// Returns the error messages for a model; "" if it is valid.
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
