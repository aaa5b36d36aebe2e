// A model's layers as their user wrote them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nn/graph.h"

namespace dtrain {

/// A layer with the activation that its options named, which is a node of its own in the graph.
struct LayerRow {
  std::string name, kind;
  std::vector<std::string> inputs;
  TensorSpec output;
  int64_t parameters = 0;
  bool trainable = true;
};

std::vector<LayerRow> layer_rows(const Graph& graph);

}  // namespace dtrain
