// The passes that compile a graph to a program, in the order in which compile() calls them. The first ones
// annotate the nodes of the graph, `lower_*` write instructions, and the rest rewrite these.
#pragma once

#include <span>

#include "ops/ops.h"
#include "program/compile_state.h"
#include "program/prepared_layers.h"

namespace dtrain {

// Annotate nodes.

/// Lets each loss start before a final softmax or sigmoid where it has a form for that.
void choose_loss_points(CompileState& step);
/// An elementwise activation joins the layer before it where that layer can compute it on the same slot, and
/// nothing else reads that layer's value, no loss either.
void fuse_activations(CompileState& step);
/// One of the two terms of a sum is not written: its layer adds the other, where it can and nothing else
/// reads the term.
void fuse_sums(CompileState& step, std::span<Ops* const> ops);
/// Finds the nodes that have parameters to train, or follow such nodes.
void find_gradients(CompileState& step);
/// Prepares the layers for their devices, and notes what they require. `ops`: by slot. Throws a UserError
/// at the layer's place where a device cannot compute it.
PreparedLayers prepare_layers(CompileState& step, std::span<Ops* const> ops);

// Write instructions. Each reads values as they were made: in any layout, and on any slot.

/// The batch's columns, the layers' forward calls, and the model's outputs.
void lower_forward(CompileState& step);
/// Losses, metrics and sums of weights.
void lower_losses(CompileState& step);
/// Gradients from the losses to the parameters, against the order of the graph.
void lower_backward(CompileState& step);

// Rewrite instructions.

/// Inserts a conversion where a reader wants another layout than a value has: ahead of its first reader, or
/// right behind what makes the value if another slot is to have it.
void choose_layouts(CompileState& step);
/// Ahead of a segment's backward part the forward calls of its layers, of which backward reads something, are
/// made again into new values (GraphNode::recompute).
void recompute(CompileState& step);
/// Where a reader is on another slot, what it reads is sent right behind what makes it, and received ahead of
/// the slot's first reader.
void transfer_values(CompileState& step);
/// Where the slot has no whole parameters, each call's are gathered ahead of it, while the call before
/// computes.
void gather_parameters(CompileState& step);
/// Where the slot has no whole gradients, they go to buckets, which are reduced once they are full.
void reduce_gradients(CompileState& step);
/// Gives every value a buffer, which several share where one overwrites another or is a view of it.
void assign_buffers(CompileState& step);
/// Gives every buffer a lifetime and a place in its slot's memory.
void assign_memory(CompileState& step);

/// All passes in order.
PreparedLayers compile(CompileState& step, std::span<Ops* const> ops);

}  // namespace dtrain
