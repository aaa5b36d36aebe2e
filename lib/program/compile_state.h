// The state that the passes of compiling a program share: the sources of the program, the findings of earlier
// passes about the graph's nodes, and the program as it is so far.
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

/// Where a head's loss reads its prediction: before a final softmax or sigmoid where the loss has a form for
/// that.
struct LossPoint {
  ValueRef value;
  std::shared_ptr<const Loss> loss;
};

/// The notes of passes about a node of the graph.
struct NodeState {
  ActivationSpec activation;  // computed by the node's layer behind its first output
  int fused_into = -1;        // of an activation: the node that computes it
  int added_in = -1;  // the sum that this node's layer gives, as it is called in the place of the sum's
  int summand = -1;   // of a sum: the node whose layer gives it
  bool needs_gradient = false;
  bool is_prepared = false;  // false: an input, or fused into the node before
  LayerRequirements requirements;
  std::vector<ValueId>
      values;  // its outputs, as its layer gives them; of a fused activation the other node's
  CallId forward = CallId::none;
  std::vector<std::vector<ValueId>> gradients;  // by output: what readers give back
};

struct CompileState {
  /// `compute_types`: by slot. `slots`: of each node; empty where all are on slot 0.
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

  /// The computed output that `ref` means: for a fused activation, the output of the node before it.
  ValueRef computed(ValueRef ref) const;
  /// The value of a node's output, on the node's slot and as its layer gives it.
  ValueId value_of(ValueRef ref) const { return state(ref.node).values[static_cast<size_t>(ref.output)]; }
  Shape batch_shape(ValueRef ref) const { return graph.spec(ref).shape.prepended(batch()); }
  /// Of an output on a slot, or its gradient.
  size_t bytes_on(ValueRef ref, int slot) const;
  /// "dense_1", or of a later output "lstm:1".
  std::string name_of(ValueRef ref) const;
  /// A new value for an output or its gradient; its name says which.
  ValueId add_value(ProgramValue::Kind kind, ValueRef ref, int slot, Layout layout);
  /// A new value of another kind.
  ValueId add_array(ProgramValue::Kind kind, std::string name, int slot, size_t bytes);

  /// The layout of the parameters that a node uses.
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
  std::vector<LossPoint> loss_points;  // by head; none for prediction
  std::vector<NodeState> states;       // by node
  std::vector<std::string> warnings, notes;
  Program program;
};

}  // namespace dtrain
