// Copies of masked values for Keras's attention layers.
#pragma once

#include "nn/graph.h"

namespace dtrain {

/// Returns a copy of the graph with additional layers, which Keras needs to compute the same outputs. Keras's
/// MultiHeadAttention removes the masks of its inputs, so that layers that read the same values later see no
/// masks. In the returned graph, an attention layer reads copies of the masked values that it shares with
/// other readers. A copy is a `rescaling` layer with scale 1, which keeps the mask. All nodes of `graph` keep
/// their indices, and the copies are appended after them. If there are copies, the nodes are not in
/// topological order.
Graph with_mask_copies(const Graph& graph);

}  // namespace dtrain
