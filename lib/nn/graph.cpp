#include "nn/graph.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "nn/model_spec.h"

namespace dtrain {

std::vector<TensorSpec> Graph::input_specs() const {
  std::vector<TensorSpec> specs;
  for (const int input : inputs) specs.push_back(spec({input}));
  return specs;
}

const std::string& Graph::layer_name(int node) const {
  const auto at = static_cast<size_t>(node);
  return nodes[nodes[at].is_activation_of_previous ? at - 1 : at].name;
}

const OptionalRegularizer& activity_regularizer_of(const std::vector<GraphNode>& nodes, int layer) {
  const auto at = static_cast<size_t>(layer), next = at + 1;
  return nodes[next < nodes.size() && nodes[next].is_activation_of_previous ? next : at].activity_regularizer;
}

std::string Graph::value_name(ValueRef value) const {
  return value.output == 0 ? layer_name(value.node)
                           : fmt::format("{}:{}", layer_name(value.node), value.output);
}

bool GraphNode::keeps_parameters(std::span<const TensorSpec> of_inputs) const {
  const std::vector<ParameterSpec> specs = layer->parameters(of_inputs);
  return std::equal(specs.begin(), specs.end(), parameters.begin(), parameters.end(),
                    [](const ParameterSpec& a, const ParameterSpec& b) { return a.shape == b.shape; });
}

bool GraphNode::has_moving_parameters() const {
  return std::any_of(parameters.begin(), parameters.end(), [&](const ParameterSpec& parameter) {
    return trains(parameter) || (trainable && parameter.moving_average);
  });
}

bool Graph::is_synchronized() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const GraphNode& node) {
    return node.layer && node.layer->is_synchronized() && node.has_moving_parameters();
  });
}

bool Graph::has_penalties() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const GraphNode& node) {
    if (node.activity_penalty()) return true;
    return node.shared_with < 0 &&
           std::any_of(node.parameters.begin(), node.parameters.end(), [&](const ParameterSpec& parameter) {
             return node.trains(parameter) && parameter.has_penalty();
           });
  });
}

int64_t Graph::count_parameters(bool trainable) const {
  int64_t count = 0;
  for (const GraphNode& node : nodes) {
    if (node.shared_with >= 0) continue;
    for (const ParameterSpec& parameter : node.parameters)
      if (node.trains(parameter) == trainable) count += parameter.shape.elements();
  }
  return count;
}

namespace {

std::vector<std::string> value_names(const Graph& graph, const std::vector<ValueRef>& values) {
  std::vector<std::string> names;
  for (const ValueRef& value : values) names.push_back(graph.value_name(value));
  return names;
}

/// The layer names of each recomputed segment, in order.
using Segments = std::map<int, std::vector<std::string>>;

Segments segments_of(const Graph& graph) {
  Segments segments;
  for (const GraphNode& node : graph.nodes)
    if (node.recompute >= 0 && !node.is_activation_of_previous) segments[node.recompute].push_back(node.name);
  return segments;
}

/// Returns the value of `recompute:` that every layer of this segment has.
Recompute recompute_of(const std::vector<std::string>& segment) {
  Recompute recompute{.on = true, .segment = std::nullopt};
  if (segment.size() > 1) recompute.segment = {{segment.front(), {}}};
  return recompute;
}

ConfigNode write_layer(const Graph& graph, int number, const Segments& segments) {
  const GraphNode& node = graph.nodes[static_cast<size_t>(number)];
  std::vector<ConfigNode::Entry> options{
      ConfigNode::entry("name", Codec<std::string>::write(node.name)),
      ConfigNode::entry("inputs", write_names(value_names(graph, node.inputs))),
      ConfigNode::entry("trainable", Codec<bool>::write(node.trainable || node.is_frozen)),
  };
  if (node.device) options.push_back(ConfigNode::entry("device", Codec<WrittenDevice>::write(*node.device)));
  const bool has_options = node.shared_with < 0 || graph.is_tied(number);
  if (const auto& regularizer = activity_regularizer_of(graph.nodes, number); regularizer && has_options)
    options.push_back(ConfigNode::entry("activity_regularizer", regularizer->resolved));
  if (node.ignores_mask) options.push_back(ConfigNode::entry("ignore_mask", Codec<bool>::write(true)));
  if (node.recompute >= 0)
    options.push_back(
        ConfigNode::entry("recompute", Codec<Recompute>::write(recompute_of(segments.at(node.recompute)))));
  if (node.shared_with >= 0)
    options.push_back(ConfigNode::entry(
        "shared_with", Codec<std::string>::write(graph.nodes[static_cast<size_t>(node.shared_with)].name)));
  if (has_options && node.layer.resolved.is_mapping())
    for (const ConfigNode::Entry& option : node.layer.resolved.entries().front().second.entries())
      options.push_back(option);
  return ConfigNode::mapping({ConfigNode::entry(node.kind, ConfigNode::mapping(std::move(options)))});
}

}  // namespace

bool ModelEnds::is_open() const {
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const auto& one) { return !one.open_shape.is_null(); }) ||
         std::any_of(outputs.begin(), outputs.end(),
                     [](const auto& one) { return !one.open_units.is_null(); });
}

const GraphNode* Graph::reader_of_indices(int input) const {
  const GraphNode* reader = nullptr;
  for (const GraphNode& node : nodes) {
    const bool reads = node.layer && !node.inputs.empty() && node.inputs[0] == ValueRef{input};
    if (!reads || !node.layer->indices()) continue;
    if (!reader || *node.layer->indices() < *reader->layer->indices()) reader = &node;
  }
  return reader;
}

ConfigNode write_model(const Graph& graph) {
  std::vector<ConfigNode::Entry> inputs;
  std::vector<ConfigNode> layers;
  const Segments segments = segments_of(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    if (node.kind == "input")
      inputs.push_back({Codec<std::string>::write(node.name),
                        InputSpec::schema().write({node.outputs[0].shape, node.outputs[0].dtype})});
    else if (!node.is_activation_of_previous)
      layers.push_back(write_layer(graph, static_cast<int>(i), segments));
  }
  ConfigNode model = ConfigNode::mapping({
      ConfigNode::entry("inputs", ConfigNode::mapping(std::move(inputs))),
      ConfigNode::entry("layers", ConfigNode::sequence(std::move(layers))),
      ConfigNode::entry("outputs", write_names(value_names(graph, graph.outputs))),
  });
  if (graph.freeze) model = model.with("freeze", Codec<Patterns>::write(*graph.freeze));
  if (graph.pretrained) model = model.with("weights", PretrainedWeights::schema().write(*graph.pretrained));
  return model;
}

}  // namespace dtrain
