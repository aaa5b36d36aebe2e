// The graph's layers in the order and under the names in which both Kerases know them. Keras takes a file's
// weights by position in its own order of layers, not by name, so the order of a checkpoint has to be
// Keras's.
#include <algorithm>
#include <cctype>
#include <unordered_set>

#include <fmt/format.h>

#include "nn/graph.h"

namespace dtrain {

namespace {

/// How many layers lie between each node's outputs and the farthest output behind it.
std::vector<int> depths_of(const Graph& graph) {
  std::vector<int> depths(graph.nodes.size(), 0);
  for (size_t i = graph.nodes.size(); i-- > 0;) {  // readers come before what they read
    const GraphNode& node = graph.nodes[i];
    const int depth = depths[i] + (is_keras_layer(node) ? 1 : 0);
    for (const ValueRef& input : node.inputs) {
      int& below = depths[static_cast<size_t>(input.node)];
      below = std::max(below, depth);
    }
  }
  return depths;
}

/// The place of each node in a depth-first search from the outputs that counts a node before its inputs; -1
/// for what no output depends on.
std::vector<int> visits_of(const Graph& graph) {
  std::vector<int> visits(graph.nodes.size(), -1);
  std::vector<ValueRef> stack(graph.outputs.rbegin(), graph.outputs.rend());
  for (int next = 0; !stack.empty();) {
    const auto at = static_cast<size_t>(stack.back().node);
    stack.pop_back();
    if (visits[at] >= 0) continue;
    visits[at] = next++;
    const std::vector<ValueRef>& inputs = graph.nodes[at].inputs;
    stack.insert(stack.end(), inputs.rbegin(), inputs.rend());
  }
  return visits;
}

/// The name as it may stand in a model of Keras, which need not be unique.
std::string spelled(std::string name) {
  constexpr std::string_view kTaken =
      "top_level_model_weights";  // a group that Keras takes for another thing
  std::replace(name.begin(), name.end(), '/', '.');
  return name == kTaken ? name + "_1" : keras_name(name, "layer");
}

/// By node. A layer whose name Keras can take as it is keeps it, whatever the others are renamed to.
std::vector<std::string> names_of_layers(const Graph& graph) {
  std::vector<std::string> names;
  std::unordered_set<std::string> taken;
  for (const GraphNode& node : graph.nodes) {
    names.push_back(spelled(node.name));
    if (names.back() == node.name) taken.insert(node.name);
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == graph.nodes[i].name || !is_keras_layer(graph.nodes[i])) continue;
    const std::string base = names[i];
    for (int number = 1; !taken.insert(names[i]).second; ++number)
      names[i] = fmt::format("{}_{}", base, number);
  }
  return names;
}

}  // namespace

bool is_keras_layer(const GraphNode& node) {
  return !node.is_activation_of_previous || node.layer->keras_class() != "Activation";
}

std::string keras_name(std::string_view name, std::string_view prefix) {
  const auto alphanumeric = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  std::string result(name);
  for (char& c : result)
    if (!alphanumeric(c) && c != '.' && c != '-') c = '_';
  if (result.empty() || !(alphanumeric(result[0]) || result[0] == '.')) result.insert(0, prefix);
  return result;
}

std::vector<KerasLayer> Graph::keras_layers() const {
  const std::vector<int> depths = depths_of(*this), visits = visits_of(*this);
  std::vector<std::string> names = names_of_layers(*this);
  std::vector<KerasLayer> layers;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (is_keras_layer(nodes[i])) layers.push_back({static_cast<int>(i), std::move(names[i])});
  std::stable_sort(layers.begin(), layers.end(), [&](const KerasLayer& a, const KerasLayer& b) {
    const auto i = static_cast<size_t>(a.node), j = static_cast<size_t>(b.node);
    return depths[i] != depths[j] ? depths[i] > depths[j] : visits[i] < visits[j];
  });
  return layers;
}

}  // namespace dtrain
