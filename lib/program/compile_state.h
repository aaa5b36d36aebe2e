// State that is shared by the compiler's passes: the graph, the results of earlier passes for the nodes of
// the graph, and the program so far.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nn/graph.h"
#include "nn/head.h"
#include "nn/layer.h"
#include "nn/parameters.h"
#include "program/plan_options.h"
#include "program/program.h"

namespace dtrain {

/// The value that a head's loss reads. If the head's output is computed by a final softmax or sigmoid, and
/// the loss has a form for logits, the value is the input of the softmax or sigmoid. Otherwise the value is
/// the output.
struct LossPoint {
  ValueRef value;
  std::shared_ptr<const Loss> loss;
};

/// Results of the passes for one node of the graph.
struct NodeState {
  ActivationSpec activation;  // activation that the node's layer applies to its first output
  int fused_into = -1;        // for a fused activation: the node whose layer computes the activation
  // If a sum is fused into this node's layer: the node of the sum. The layer then runs at the position of
  // that node.
  int added_in = -1;
  int summand = -1;  // for a fused sum: the node whose layer computes the sum
  bool needs_gradient = false;
  bool is_prepared = false;  // false for an input or a fused activation
  LayerRequirements requirements;
  /// The values of the node's outputs, in the layouts of its layer. A fused activation has the values of the
  /// node that computes it.
  std::vector<ValueId> values;
  CallId forward = CallId::none;
  // Indexed by output: the gradients that the readers of the output contribute.
  std::vector<std::vector<ValueId>> gradients;
};

struct CompileState {
  /// `compute_types` is indexed by slot. `slots` has the slot of each node; if it is empty, all nodes are on
  /// slot 0.
  CompileState(const Graph& graph, const ModelLayout& layout, std::span<const Head> heads,
               std::span<const int> slots, std::vector<DType> compute_types, const PlanKey& key,
               const PlanOptions& options);

  const GraphNode& node(int i) const { return graph.nodes[static_cast<size_t>(i)]; }
  NodeState& state(int i) { return states[static_cast<size_t>(i)]; }
  const NodeState& state(int i) const { return states[static_cast<size_t>(i)]; }
  NodeState& state(NodeId id) { return state(static_cast<int>(id)); }
  const NodeState& state(NodeId id) const { return state(static_cast<int>(id)); }
  int count() const { return static_cast<int>(graph.nodes.size()); }
  int slot_of(int i) const { return slots.empty() ? 0 : slots[static_cast<size_t>(i)]; }
  DType compute_type(int slot) const { return compute_types[static_cast<size_t>(slot)]; }
  int64_t batch() const { return program.key.batch; }
  bool training() const { return program.key.purpose == PlanKey::Purpose::training; }
  bool wants_losses() const { return program.key.purpose != PlanKey::Purpose::prediction; }

  /// Returns the output that has the value of `ref`. If `ref` is the output of a fused activation, this is
  /// the output of the node that computes the activation. Otherwise it is `ref`.
  ValueRef computed(ValueRef ref) const;
  /// Returns the value of a node's output on the node's slot, in the layout of its layer.
  ValueId value_of(ValueRef ref) const { return state(ref.node).values[static_cast<size_t>(ref.output)]; }
  Shape batch_shape(ValueRef ref) const { return graph.spec(ref).shape.prepended(batch()); }
  /// Returns the bytes of an output, or of its gradient, on a slot.
  size_t bytes_on(ValueRef ref, int slot) const;
  /// Returns the name of an output: "dense_1"; "lstm:1" for a later output; "mask of embedding" for a mask.
  std::string name_of(ValueRef ref) const;
  /// Adds a value for an output or its gradient; the name of the value says which of the two it is.
  ValueId add_value(ProgramValue::Kind kind, ValueRef ref, int slot, Layout layout);
  /// Adds a value of another kind, such as memory for a parameter's gradient.
  ValueId add_array(ProgramValue::Kind kind, std::string name, int slot, size_t bytes);

  /// Returns the layout of the slot that has the node's parameters.
  const ParameterLayout& layout_of(int i) const { return layout.on(layout.owner_slot(i)); }
  const ParameterSlice& slice_of(int i, size_t index) const {
    return layout_of(i).slice(i, static_cast<int>(index));
  }

  const Graph& graph;
  const ModelLayout& layout;
  const std::span<const Head> heads;
  const std::span<const int> slots;
  const std::vector<DType> compute_types;
  const PlanOptions options;
  std::vector<LossPoint> loss_points;  // indexed by head; empty for prediction
  std::vector<NodeState> states;       // indexed by node
  std::vector<std::string> warnings, notes;
  Program program;
};

}  // namespace dtrain
