// The passes that compile a graph to a program, in the order in which compile() runs them. The first passes
// annotate nodes of the graph, `lower_*` emit instructions, and the remaining passes rewrite these.
#pragma once

#include <span>

#include "ops/ops.h"
#include "program/compile_state.h"
#include "program/prepared_layers.h"

namespace dtrain {

// Passes that annotate nodes:

/// Lets each loss read the input of a final softmax or sigmoid if the loss has a form for logits.
void choose_loss_points(CompileState& step);
/// Fuses an elementwise activation into the layer before it, if that layer can compute it on the same slot
/// and no other layer, output or loss reads the layer's value.
void fuse_activations(CompileState& step);
/// Fuses a sum of two terms into the layer that computes one of them: that layer adds the other term.
/// Requires that the layer supports it, and that only the sum reads the layer's output.
void fuse_sums(CompileState& step, std::span<Ops* const> ops);
/// Finds the nodes that have trained parameters or depend on such nodes.
void find_gradients(CompileState& step);
/// Prepares the layers for their devices and stores their requirements. `ops` is indexed by slot. Throws
/// UserError with the layer's source location if a device cannot compute a layer.
PreparedLayers prepare_layers(CompileState& step, std::span<Ops* const> ops);

// Passes that emit instructions. Operands may still have another layout than required, or be on another slot.

/// Emits the batch's columns, the layers' forward calls, and the model's outputs.
void lower_forward(CompileState& step);
/// Emits losses, metrics and sums of weights.
void lower_losses(CompileState& step);
/// Emits the computation of gradients from the losses to the parameters, in reverse order of the graph.
void lower_backward(CompileState& step);

// Passes that rewrite instructions:

/// Removes forward calls and views whose values are neither outputs nor read by later instructions. An
/// example is the final softmax of a loss that reads logits, if no metric reads the probabilities. Runs after
/// the losses and gradients are lowered, because they read values.
void remove_unread(CompileState& step);
/// Inserts a conversion where a value does not have the layout that a reader needs: before its first reader
/// or, if a reader is on another slot, directly after the instruction that writes the value.
void choose_layouts(CompileState& step);
/// Inserts, before the backward part of each recomputed segment, the forward calls whose results that part
/// reads; they write to new values (GraphNode::recompute).
void recompute(CompileState& step);
/// Inserts transfers to readers on other slots: a value is sent directly after the instruction that writes
/// it, and received before the slot's first reader.
void transfer_values(CompileState& step);
/// If slots hold only shards of the parameters, gathers each call's parameters while the previous call
/// computes.
void gather_parameters(CompileState& step);
/// If slots hold only shards of the gradients, collects gradients in buckets, which are reduced once they are
/// full. If the devices all-reduce gradients, starts the all-reduce of each bucket once it is full.
void reduce_gradients(CompileState& step);
/// Assigns a buffer to every value. Values share a buffer if one overwrites the other or is a view of it.
void assign_buffers(CompileState& step);
/// Computes every buffer's lifetime and its offset in its slot's memory.
void assign_memory(CompileState& step);

/// Runs all passes in order.
PreparedLayers compile(CompileState& step, std::span<Ops* const> ops);

}  // namespace dtrain
