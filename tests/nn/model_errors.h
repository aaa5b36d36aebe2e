// Error messages for invalid models, which are given as YAML.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include "config/load/load.h"
#include "nn/graph.h"
#include "support/errors.h"

namespace dtrain::test {

/// Returns the error messages for a model, or "" if the model is valid.
inline std::string model_errors(const std::string& yaml) {
  Diagnostics diagnostics;
  const auto graph = parse_model(parse_yaml(yaml, "m.yaml", diagnostics), diagnostics);
  CHECK(graph.has_value() != diagnostics.has_errors());
  return messages(diagnostics);
}

/// Returns a model with an input x of shape [28, 28, 1] and the given layers. The layers start on line 3.
inline std::string with_layers(const std::string& layers, const std::string& after = "") {
  return "inputs: {x: [28, 28, 1]}\nlayers:\n" + layers + after;
}

/// Returns a model with an input x of shape [4], the given blocks, and the given layers. The blocks start on
/// line 3.
inline std::string with_blocks(const std::string& blocks, const std::string& layers) {
  return "inputs: {x: [4]}\nblocks:\n" + blocks + "layers:\n" + layers;
}

}  // namespace dtrain::test
