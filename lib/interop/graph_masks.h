// Padding masks in exported graphs.
#pragma once

#include "nn/graph.h"

namespace dtrain {

/// Returns the mask that a layer reads for an input. Returns ValueRef(), whose node is -1, if the layer reads
/// no mask for this input.
ValueRef mask_of_input(const GraphNode& node, size_t input);

/// Returns whether any input of the node has a mask, even if the layer does not read the mask.
bool has_masked_input(const Graph& graph, const GraphNode& node);

/// Returns whether the layer reads the mask of any input.
bool reads_masks(const GraphNode& node);

/// Returns the mask that a node creates: the node's last output.
ValueRef mask_of_creator(const Graph& graph, int node);

/// Returns whether a layer reads the mask that this node creates.
bool creates_read_mask(const Graph& graph, int node);

}  // namespace dtrain
