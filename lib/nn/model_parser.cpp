// parse_model: builds a graph from the `model:` section of a configuration.
#include <algorithm>

#include <fmt/format.h>

#include "base/files/paths.h"
#include "base/pattern.h"
#include "config/load/files.h"
#include "nn/graph.h"
#include "nn/graph_builder.h"
#include "nn/model_spec.h"

namespace dtrain {

namespace {

std::vector<ModelInput> lay_inputs(const ConfigNode& inputs, GraphBuilder& builder, Scope& scope,
                                   Diagnostics& diagnostics) {
  std::vector<ModelInput> known;
  if (!inputs.is_mapping() || inputs.entries().empty()) {
    report_unexpected(inputs, "inputs", "a mapping from the names of one or more inputs to their shapes",
                      diagnostics);
    scope.flow = kUnknown;
    return known;
  }
  for (const auto& [key, value] : inputs.entries()) {
    Name name;
    Codec<Name>::parse(key, "input", name, diagnostics);
    InputSpec text;
    const size_t before = diagnostics.count();
    InputSpec::schema().parse(value, fmt::format("input '{}'", key.text()), text, diagnostics);
    builder.add_input(key, text, diagnostics.count() == before, scope);
    known.push_back({key.text(), text.dtype, text.shape.value, text.shape.written});
  }
  return known;
}

/// Returns the values of the layers that `outputs:` lists. If the key is missing, returns the value of the
/// last layer.
std::vector<ValueRef> read_outputs(const ModelSpec& text, GraphBuilder& builder, Scope& scope, size_t inputs,
                                   Diagnostics& diagnostics) {
  if (!text.outputs) return {builder.read_flow(scope)};
  std::vector<ValueRef> outputs;
  for (const ConfigNode& name : text.outputs->items) {
    if (!name.is_scalar()) continue;  // already reported
    const ValueRef value = builder.read(name, "a layer of the model", scope);
    if (value != kUnknown && value.node < static_cast<int>(inputs))
      diagnostics.error(name,
                        fmt::format("outputs: '{}' is an input of the model, not a layer", name.text()));
    if (value != kUnknown && std::find(outputs.begin(), outputs.end(), value) != outputs.end())
      diagnostics.error(name, fmt::format("outputs: '{}' is listed twice", name.text()));
    outputs.push_back(value);
  }
  return outputs;
}

/// Gives layers with shared weights the `trainable` value of the layer that owns the weights. Reports an
/// error if `freeze:` matches a layer with shared weights, but the owner of the weights is trained.
void follow_owners(const Patterns& patterns, std::vector<GraphNode>& nodes, Diagnostics& diagnostics) {
  for (GraphNode& node : nodes) {
    if (node.shared_with < 0) continue;
    const GraphNode& owner = nodes[static_cast<size_t>(node.shared_with)];
    if (node.is_frozen && owner.trainable) {
      const auto named =
          std::find_if(patterns.items.begin(), patterns.items.end(),
                       [&](const ConfigNode& item) { return matches(item.text(), node.name); });
      diagnostics.error(
          *named, fmt::format("freeze: '{}' shares the weights of '{}', which is trained; freeze both layers",
                              node.name, owner.name));
    }
    node.trainable = owner.trainable;
    node.is_frozen = owner.is_frozen;
  }
}

/// Marks all layers that match `freeze:` as not trainable. Reports an error for every pattern that matches no
/// layer.
void freeze(const Patterns& patterns, std::vector<GraphNode>& nodes, Diagnostics& diagnostics) {
  std::vector<std::string> layers;
  for (GraphNode& node : nodes) {
    if (!node.layer) continue;
    if (patterns.match(node.name)) node.is_frozen = std::exchange(node.trainable, false);
    if (!node.is_activation_of_previous) layers.push_back(node.name);
  }
  patterns.check_each_matches(layers, "freeze", "layer", diagnostics);
  follow_owners(patterns, nodes, diagnostics);
}

/// Returns the absolute path without "." and "..", and without a slash at the end.
std::string plain_path(const std::string& path) {
  std::string plain = without_dots(absolute_path(path));
  while (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
  return plain;
}

}  // namespace

std::optional<Graph> parse_model(const ConfigNode& node, Diagnostics& diagnostics, ModelEnds* ends) {
  const size_t before = diagnostics.count();
  ModelSpec text;
  // Parsing continues after errors, so that the valid parts of the model are also checked.
  ModelSpec::schema().parse(node, "model", text, diagnostics);
  const std::map<std::string, Block> blocks = parse_blocks(text.blocks, diagnostics);
  GraphBuilder builder(blocks, diagnostics);
  Scope scope;
  ModelEnds known;
  if (const ConfigNode* inputs = node.find("inputs"))
    known.inputs = lay_inputs(*inputs, builder, scope, diagnostics);
  else
    scope.flow = kUnknown;
  const size_t input_count = scope.values.size();
  if (const ConfigNode* layers = node.find("layers"); layers && layers->is_sequence() && text.layers.empty())
    report_unexpected(*layers, "model's layers", "at least one layer", diagnostics);
  builder.reserve(input_count + 2 * text.layers.size());  // a layer may have another node for its activation
  builder.lay(text.layers, scope);
  Graph graph;
  graph.outputs = read_outputs(text, builder, scope, input_count, diagnostics);
  for (const ValueRef value : graph.outputs) known.outputs.push_back(builder.describe(value));
  builder.check_open_units(known.outputs);
  const bool is_open = known.is_open();
  if (ends) *ends = std::move(known);
  builder.check_all_used();
  builder.check_segments();
  builder.check_unused_blocks();
  graph.nodes = builder.take_nodes();
  if (text.freeze && !builder.has_misunderstood()) freeze(*text.freeze, graph.nodes, diagnostics);
  if (diagnostics.count() != before || is_open) return std::nullopt;

  for (size_t i = 0; i < input_count; ++i) graph.inputs.push_back(static_cast<int>(i));
  graph.freeze = std::move(text.freeze);
  if (text.weights) {
    graph.pretrained = std::move(text.weights);
    graph.pretrained->mark = node.find("weights")->mark();
    const Mark named_at = place_in(node, {"weights", "from"});
    graph.pretrained->from = plain_path(find_file(graph.pretrained->from, named_at));
  }
  graph.resolved = write_model(graph);
  return graph;
}

}  // namespace dtrain
