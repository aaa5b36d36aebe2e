#include "interop/keras/import/graph.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layer_formats.h"

namespace dtrain {
namespace {

/// Returns true if the shape is missing or if one of its dimensions is unspecified.
bool is_open(const ConfigNode& shape) {
  if (shape.is_mapping()) {
    const ConfigNode* inner = shape.find("shape");
    return !inner || is_open(*inner);
  }
  if (!shape.is_sequence()) return true;
  return std::any_of(shape.items().begin(), shape.items().end(),
                     [](const ConfigNode& extent) { return extent.is_null(); });
}

void check_inputs(const ConfigNode& model) {
  std::string problems;
  for (const auto& [name, shape] : model.find("inputs")->entries()) {
    if (!is_open(shape)) continue;
    const ConfigNode* extents = shape.is_mapping() ? shape.find("shape") : &shape;
    std::vector<std::string> shown;
    if (extents && extents->is_sequence())
      for (const ConfigNode& extent : extents->items())
        shown.push_back(extent.is_null() ? "?" : extent.text());
    std::string example = fmt::format("{}", fmt::join(shown, ","));
    problems += fmt::format(
        "\n  input '{0}' {1}; give its full shape, for example with --set 'model.inputs.{0}=[{2}]'",
        name.text(), shown.empty() ? "has no shape" : fmt::format("has the shape [{}]", example),
        shown.empty() ? "64" : [&] {
          for (std::string& one : shown)
            if (one == "?") one = "224";
          return fmt::format("{}", fmt::join(shown, ","));
        }());
  }
  if (!problems.empty())
    throw UserError("the file leaves some input dimensions unspecified, but dtrain needs all of them:" +
                    problems);
}

/// Compares the axis and the width that `reader` found in the Keras layer with those of the dtrain layer
/// `node`. Returns a description of a difference that dtrain cannot express; "" if there is none.
/// `channels_moved`: whether the layer has channels first in the file but channels last in dtrain.
std::string shape_problem(const KerasLayerReader& reader, const Graph& graph, const GraphNode& node,
                          bool channels_moved) {
  if (reader.last_axis() && !channels_moved) {
    const int64_t rank = graph.spec(node.inputs[0]).shape.rank();
    if (*reader.last_axis() != rank)
      return fmt::format("works along axis {}, but dtrain supports only the last axis (channels last)",
                         *reader.last_axis());
  }
  if (reader.output_width()) {
    const int64_t width = node.outputs[0].shape.back();
    if (*reader.output_width() != width)
      return fmt::format(
          "has an output_shape of width {}, but the output of dtrain's layer always has the width of its "
          "input, which is {}",
          *reader.output_width(), width);
  }
  return "";
}

}  // namespace

ConfigNode without_automatic_names(const ConfigNode& model, const Graph& graph) {
  std::vector<ConfigNode> layers;
  for (const ConfigNode& layer : model.find("layers")->items()) {
    const auto& [kind, options] = layer.entries().front();
    const ConfigNode* name = options.find("name");
    const bool may_be_automatic =
        name && (name->text() == kind.text() || name->text().starts_with(kind.text() + "_"));
    constexpr std::string_view kName[] = {"name"};
    const ConfigNode shorter = may_be_automatic ? options.without(kName) : options;
    const bool is_bare = shorter.is_mapping() && shorter.entries().empty();
    layers.push_back(is_bare ? kind : ConfigNode::mapping({ConfigNode::entry(kind.text(), shorter)}));
  }
  const ConfigNode changed = model.with("layers", ConfigNode::sequence(std::move(layers)));
  Diagnostics diagnostics;
  const std::optional<Graph> other = parse_model(changed, diagnostics);
  if (diagnostics.has_errors() || !other) return model;
  const auto same = [](const GraphNode& a, const GraphNode& b) { return a.name == b.name; };
  const bool are_same =
      std::equal(graph.nodes.begin(), graph.nodes.end(), other->nodes.begin(), other->nodes.end(), same);
  return are_same ? changed : model;
}

Graph build_imported(const ImportedModel& imported, const ConfigNode& model) {
  check_inputs(model);
  Diagnostics diagnostics;
  std::optional<Graph> graph = parse_model(model, diagnostics);
  diagnostics.throw_if_errors();
  std::string problems;
  for (const auto& [layer, name] : imported.names) {
    KerasLayerReader reader(layer->class_name, layer->config, 3);
    formats_of_keras_class(layer->class_name)->from_keras(reader);
    const bool channels_moved = imported.moved_channels.contains(layer);
    for (const GraphNode& node : graph->nodes) {
      if (node.name != name || node.is_activation_of_previous) continue;
      const std::string problem = shape_problem(reader, *graph, node, channels_moved);
      if (!problem.empty()) problems += fmt::format("\n  {} ({}): {}", name, layer->class_name, problem);
    }
  }
  if (!problems.empty()) throw UserError("dtrain cannot express some layers of this model:" + problems);
  return std::move(*graph);
}

}  // namespace dtrain
