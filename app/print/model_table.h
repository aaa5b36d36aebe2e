// Tables of a model's layers as the user wrote them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "distribute/strategy.h"
#include "nn/graph.h"

namespace dtrain {

/// A layer including its `activation` option, which is a separate node in the graph.
struct LayerRow {
  std::string name, kind;
  std::vector<std::string> inputs;
  TensorSpec output;
  int64_t parameters = 0;
  bool trainable = true;
  // Name of the layer whose parameters this layer shares; otherwise "". `parameters` is then 0, because the
  // parameters are counted in the row of the other layer.
  std::string shared_with;
  int recompute = -1;  // GraphNode::recompute
  int node = 0;        // index in the graph
};

std::vector<LayerRow> layer_rows(const Graph& graph);

/// Returns the names of a layer's devices; empty if the placement has no replicas.
std::vector<std::string> devices_of(const Placement& placement, const LayerRow& row);

/// Describes the replicas: "3 replicas", "1 replica of 4 stages, 8 microbatches".
std::string placement_text(const Placement& placement);

/// Returns a text table of the layers and their devices.
std::string layer_table(const Graph& graph, const Placement& placement);

}  // namespace dtrain
