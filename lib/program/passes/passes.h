// The passes that compile a graph to a program, in the order in which compile() runs them. The first passes
// annotate nodes of the graph, the `lower_*` passes emit instructions, and the remaining passes rewrite the
// instructions.
#pragma once

#include <span>

#include "ops/ops.h"
#include "program/compile_state.h"
#include "program/prepared_layers.h"

namespace dtrain {

// Passes that annotate nodes:

/// Chooses the value that each loss reads. If a loss has a form for logits, and a final softmax or sigmoid
/// computes its prediction, the loss reads the input of the softmax or sigmoid.
void choose_loss_points(CompileState& step);
/// Fuses an elementwise activation into the layer before it, if that layer can compute it on the same slot
/// and no other layer, output or loss reads the layer's value.
void fuse_activations(CompileState& step);
/// Fuses a sum of two terms into the layer that computes one of the terms, so that this layer adds the other
/// term. Requires that the layer supports this, and that only the sum reads the layer's output.
void fuse_sums(CompileState& step, std::span<Ops* const> ops);
/// Finds the nodes that need gradients: nodes that have trained parameters, and nodes that depend on these
/// nodes.
void find_gradients(CompileState& step);
/// Prepares the layers for their devices and stores their requirements. `ops` is indexed by slot. Throws
/// UserError with the layer's source location if a device cannot compute a layer.
PreparedLayers prepare_layers(CompileState& step, std::span<Ops* const> ops);

// Passes that emit instructions. After these passes, an operand may still be on a different slot than its
// reader, or have a different layout than its reader requires:

/// Emits the batch's columns, the layers' forward calls, and the model's outputs.
void lower_forward(CompileState& step);
/// Emits the instructions that compute losses, metrics and sums of row weights.
void lower_losses(CompileState& step);
/// Emits the computation of gradients from the losses to the parameters, in reverse order of the graph.
void lower_backward(CompileState& step);

// Passes that rewrite instructions:

/// Removes the calls and views of the forward pass whose values are neither outputs nor read by later
/// instructions. An example is the final softmax of a loss that reads logits, if no metric reads the
/// probabilities. Must run after the losses and gradients are lowered, because they read values.
void remove_unread(CompileState& step);
/// Inserts a conversion if a value does not have the layout that a reader needs. The conversion is inserted
/// before the first reader or, if a reader is on a different slot, directly after the instruction that writes
/// the value.
void choose_layouts(CompileState& step);
/// Repeats forward calls of recomputed segments (GraphNode::recompute). The repeated calls are inserted
/// before the backward part of the segment, and write their results to new values, which the backward part
/// reads.
void recompute(CompileState& step);
/// Inserts transfers of values to readers on other slots. A value is sent directly after the instruction that
/// writes it. It is received before the first instruction that reads it on the other slot.
void transfer_values(CompileState& step);
/// If slots store only shards of the parameters, gathers the parameters of each call while the previous call
/// computes.
void gather_parameters(CompileState& step);
/// If slots store only shards of the gradients, collects gradients in buckets, and reduces each bucket once
/// it is full. If the devices all-reduce gradients, starts the all-reduce of each bucket once it is full.
void reduce_gradients(CompileState& step);
/// Assigns a buffer to every value. Two values share a buffer if one value overwrites the other, or if one is
/// a view of the other.
void assign_buffers(CompileState& step);
/// Computes every buffer's lifetime and its offset in its slot's memory.
void assign_memory(CompileState& step);

/// Runs all passes in order.
PreparedLayers compile(CompileState& step, std::span<Ops* const> ops);

}  // namespace dtrain
