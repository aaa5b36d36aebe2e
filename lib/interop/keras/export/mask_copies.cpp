#include "interop/keras/export/mask_copies.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "config/diagnostics.h"
#include "interop/graph_masks.h"
#include "interop/layer_formats.h"

namespace dtrain {
namespace {

/// Returns a rescaling layer whose output equals its input.
Configured<Layer> identity_layer() {
  const ConfigNode options = ConfigNode::mapping({ConfigNode::entry("scale", ConfigNode::scalar("1"))});
  Diagnostics mistakes;
  return registry<Layer>().parse(ConfigNode::mapping({ConfigNode::entry("rescaling", options)}), mistakes);
}

/// Returns the number of layers that read each value. A model output counts as one more reader.
std::map<ValueRef, int> readers_of_values(const Graph& graph) {
  std::map<ValueRef, int> readers;
  for (const GraphNode& node : graph.nodes)
    for (const ValueRef value : std::set<ValueRef>(node.inputs.begin(), node.inputs.end())) ++readers[value];
  for (const ValueRef output : graph.outputs) ++readers[output];
  return readers;
}

/// Returns true if the node has masked inputs and its Keras layer drops their masks.
bool removes_masks(const Graph& graph, const GraphNode& node) {
  return node.layer && has_masked_input(graph, node) &&
         keras_config_of(node.layer).class_name == "MultiHeadAttention";
}

/// Returns a name that no node has.
std::string unused_name(const Graph& graph, const std::string& base) {
  const auto is_used = [&](const std::string& name) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                       [&](const GraphNode& node) { return node.name == name; });
  };
  std::string name = base;
  for (int number = 2; is_used(name); ++number) name = fmt::format("{}_{}", base, number);
  return name;
}

/// Adds a copy of `original` for the layer `reader`. Returns the copy's output.
ValueRef add_copy(Graph& graph, ValueRef original, const std::string& reader) {
  GraphNode copy;
  copy.name = unused_name(graph, reader + "_input");
  copy.kind = "rescaling";
  copy.layer = identity_layer();
  copy.inputs = {original};
  copy.outputs = {graph.spec(original)};
  copy.output_masks = {graph.mask_of(original)};
  graph.nodes.push_back(std::move(copy));
  return {static_cast<int>(graph.nodes.size()) - 1};
}

}  // namespace

Graph with_mask_copies(const Graph& graph) {
  Graph result = graph;
  std::map<ValueRef, int> readers;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!removes_masks(graph, graph.nodes[i])) continue;
    if (readers.empty()) readers = readers_of_values(graph);
    std::map<ValueRef, ValueRef> copies;
    std::vector<ValueRef> inputs = graph.nodes[i].inputs;
    for (ValueRef& input : inputs) {
      if (graph.mask_of(input) == ValueRef() || readers.at(input) == 1) continue;
      const auto [copy, is_new] = copies.try_emplace(input);
      if (is_new) copy->second = add_copy(result, input, graph.nodes[i].name);
      input = copy->second;
    }
    result.nodes[i].inputs = std::move(inputs);
  }
  return result;
}

}  // namespace dtrain
