#include <algorithm>

#include <fmt/format.h>

#include "program/passes/passes.h"

namespace dtrain {

namespace {

/// Stores the remarks of a layer. Warnings are prefixed with the layer's name, and each note is stored once.
void note_remarks(CompileState& step, int i, const Remarks& remarks) {
  if (!remarks.warning.empty())
    step.warnings.push_back(
        fmt::format("{} '{}': {}", step.node(i).kind, step.node(i).name, remarks.warning));
  std::vector<std::string>& notes = step.notes;
  if (!remarks.note.empty() && std::find(notes.begin(), notes.end(), remarks.note) == notes.end())
    notes.push_back(remarks.note);
}

/// Prepares the layer of a node. The layers of its inputs are already prepared, because nodes come after
/// their inputs.
std::unique_ptr<PreparedLayer> prepare_layer(const CompileState& step, int i, Ops& ops) {
  const GraphNode& n = step.node(i);
  const NodeState& s = step.state(i);
  std::vector<TensorSpec> inputs;
  std::vector<Layout> layouts;
  std::vector<bool> needs_gradient;
  for (const ValueRef input : n.inputs) {
    const ValueRef from = step.computed(input);
    inputs.push_back(step.graph.spec(input));
    layouts.push_back(step.state(from.node).requirements.output_layout(static_cast<size_t>(from.output)));
    needs_gradient.push_back(step.state(input.node).needs_gradient);
  }
  std::vector<bool> masked;
  for (const ValueRef mask : n.masks) masked.push_back(mask != ValueRef());
  const bool adds = s.added_in >= 0;
  const ActivationSpec& activation = adds ? step.state(s.added_in).activation : s.activation;
  const auto& groups = step.options.replicas;
  Collective* const replicas = groups.empty() ? nullptr : groups[static_cast<size_t>(step.slot_of(i))];
  try {
    return n.layer->prepare({ops, step.batch(), step.training(), inputs, n.outputs, layouts, activation, adds,
                             needs_gradient, masked, stream_of(n.name), n.has_moving_parameters(), replicas});
  } catch (const Unsupported& refusal) {
    throw error_at(n.mark, fmt::format("{} '{}': {} (output shape: {}, batch size: {})", n.kind, n.name,
                                       refusal.what(), n.outputs[0].shape.str(), step.batch()));
  }
}

}  // namespace

PreparedLayers prepare_layers(CompileState& step, std::span<Ops* const> ops) {
  PreparedLayers layers(step.graph.nodes.size());
  for (int i = 0; i < step.count(); ++i) {
    NodeState& s = step.state(i);
    if (!step.node(i).layer || s.fused_into >= 0) continue;
    std::unique_ptr<PreparedLayer>& layer = layers[static_cast<NodeId>(i)];
    layer = prepare_layer(step, i, *ops[static_cast<size_t>(step.slot_of(i))]);
    s.is_prepared = true;
    s.requirements = layer->requirements();
    note_remarks(step, i, s.requirements.remarks);
  }
  return layers;
}

}  // namespace dtrain
