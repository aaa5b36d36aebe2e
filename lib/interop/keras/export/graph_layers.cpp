#include "interop/keras/export/graph_layers.h"

#include <algorithm>
#include <cctype>
#include <unordered_set>

#include <fmt/format.h>

#include "interop/layer_formats.h"

namespace dtrain {

namespace {

/// The result of search(), a depth-first search that starts at the outputs. Like Keras, it visits the inputs
/// of a call in the order of the call's arguments.
struct Search {
  // position of each layer's first visit, indexed by the layer's first node; -1 if it is never visited
  std::vector<int> visits;
  std::vector<int> done;  // nodes in topological order, each after its inputs
};

Search search(const Graph& graph) {
  struct Step {
    int node;
    size_t inputs = 0;  // number of inputs visited so far
  };
  Search found{std::vector<int>(graph.nodes.size(), -1), {}};
  std::vector<bool> met(graph.nodes.size(), false);
  std::vector<Step> path;
  int next = 0;
  const auto go_to = [&](int node) {
    if (met[static_cast<size_t>(node)]) return;
    met[static_cast<size_t>(node)] = true;
    int& visit = found.visits[static_cast<size_t>(graph.owner(node))];
    if (visit < 0) visit = next++;
    path.push_back({node});
  };
  for (const ValueRef output : graph.outputs) {
    go_to(output.node);
    while (!path.empty()) {
      Step& step = path.back();
      const std::vector<ValueRef>& inputs = graph.nodes[static_cast<size_t>(step.node)].inputs;
      if (step.inputs < inputs.size()) {
        go_to(inputs[step.inputs++].node);
      } else {
        found.done.push_back(step.node);
        path.pop_back();
      }
    }
  }
  return found;
}

/// Returns the depth of each layer in Keras's sense, indexed by the layer's first node. The depth is the
/// number of layers on the longest path from the layer to an output. If a layer is called several times, a
/// call is at least as deep as the calls of the same layer that were visited before it.
std::vector<int> depths_of(const Graph& graph, const std::vector<int>& done) {
  std::vector<int> of_layers(graph.nodes.size(), 0), of_calls(graph.nodes.size(), 0);
  for (size_t i = done.size(); i-- > 0;) {  // in this reverse order, each node comes before its inputs
    const auto call = static_cast<size_t>(done[i]);
    int& depth = of_layers[static_cast<size_t>(graph.owner(done[i]))];
    depth = std::max(depth, of_calls[call]);
    const GraphNode& node = graph.nodes[call];
    for (const ValueRef& input : node.inputs) {
      int& below = of_calls[static_cast<size_t>(input.node)];
      below = std::max(below, depth + (is_keras_layer(graph, done[i]) ? 1 : 0));
    }
  }
  return of_layers;
}

/// Returns a valid Keras name for a layer. Another layer may have the same name.
std::string spelled(std::string name) {
  constexpr std::string_view kTaken = "top_level_model_weights";  // a group with a special meaning in Keras
  std::replace(name.begin(), name.end(), '/', '.');
  return name == kTaken ? name + "_1" : keras_name(name, "layer");
}

/// Returns true if Keras also concatenates masks for this layer. It does so if any input has a mask, even if
/// the output has none. Keras names this operation "concatenate", "concatenate_1" and so on, and rejects
/// layers that have the same name as such an operation.
bool concatenates_masks(const Graph& graph, const GraphNode& node) {
  return node.kind == "concatenate" &&
         std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueRef input) { return graph.mask_of(input) != ValueRef(); });
}

/// Returns unique Keras names, indexed by node. Names that are already valid in Keras do not change.
std::vector<std::string> names_of_layers(const Graph& graph) {
  const bool reserves_concatenate =
      std::any_of(graph.nodes.begin(), graph.nodes.end(),
                  [&](const GraphNode& node) { return concatenates_masks(graph, node); });
  std::vector<std::string> names;
  std::unordered_set<std::string> taken;
  for (const GraphNode& node : graph.nodes) {
    names.push_back(spelled(node.name));
    if (reserves_concatenate && names.back().starts_with("concatenate")) names.back().insert(0, "masked_");
    if (names.back() == node.name) taken.insert(node.name);
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    if (names[i] == node.name || !is_keras_layer(graph, static_cast<int>(i)) || node.shared_with >= 0)
      continue;
    const std::string base = names[i];
    for (int number = 1; !taken.insert(names[i]).second; ++number)
      names[i] = fmt::format("{}_{}", base, number);
  }
  return names;
}

}  // namespace

bool is_keras_layer(const Graph& graph, int node) {
  const GraphNode& its = graph.nodes[static_cast<size_t>(node)];
  // The reversed call of a tied embedding has no activation option in Keras, so a separate layer computes the
  // activation.
  return !its.is_activation_of_previous || keras_config_of(its.layer).class_name != "Activation" ||
         graph.is_tied(node - 1);
}

std::string keras_class_of(const Graph& graph, int node) {
  const GraphNode& its = graph.nodes[static_cast<size_t>(node)];
  if (its.kind == "input") return "InputLayer";
  const int nodes = static_cast<int>(graph.nodes.size());
  for (int i = its.layer->tied_kind().empty() ? nodes : node + 1; i < nodes; ++i)
    if (graph.owner(i) == node && graph.is_tied(i)) return kKerasReversibleEmbedding;
  return keras_config_of(its.layer).class_name;
}

std::string keras_name(std::string_view name, std::string_view prefix) {
  const auto alphanumeric = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  std::string result(name);
  for (char& c : result)
    if (!alphanumeric(c) && c != '.' && c != '-') c = '_';
  if (result.empty() || !(alphanumeric(result[0]) || result[0] == '.')) result.insert(0, prefix);
  return result;
}

std::vector<KerasLayer> keras_layers(const Graph& graph) {
  const Search found = search(graph);
  const std::vector<int> depths = depths_of(graph, found.done);
  std::vector<std::string> names = names_of_layers(graph);
  const std::vector<GraphNode>& nodes = graph.nodes;
  std::vector<KerasLayer> layers;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (is_keras_layer(graph, static_cast<int>(i)) && nodes[i].shared_with < 0)
      layers.push_back({static_cast<int>(i), std::move(names[i])});
  std::stable_sort(layers.begin(), layers.end(), [&](const KerasLayer& a, const KerasLayer& b) {
    const auto i = static_cast<size_t>(a.node), j = static_cast<size_t>(b.node);
    return depths[i] != depths[j] ? depths[i] > depths[j] : found.visits[i] < found.visits[j];
  });
  return layers;
}

}  // namespace dtrain
