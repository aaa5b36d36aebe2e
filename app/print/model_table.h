// A model's layers as their user wrote them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "distribute/strategy.h"
#include "nn/graph.h"

namespace dtrain {

/// A layer with the activation that its options named, which is a node of its own in the graph.
struct LayerRow {
  std::string name, kind;
  std::vector<std::string> inputs;
  TensorSpec output;
  int64_t parameters = 0;
  bool trainable = true;
  std::string shared_with;  // whose parameters it has, which count there; "" as a rule
  int recompute = -1;       // GraphNode::recompute
  int node = 0;             // of the graph
};

std::vector<LayerRow> layer_rows(const Graph& graph);

/// The names of the devices that a layer is on; none where the placement has no replicas.
std::vector<std::string> devices_of(const Placement& placement, const LayerRow& row);

/// How the replicas are, for people: "3 replicas", "1 replica of 4 stages, 8 microbatches".
std::string placement_text(const Placement& placement);

/// The table of the layers as text, with the devices of each.
std::string layer_table(const Graph& graph, const Placement& placement);

}  // namespace dtrain
