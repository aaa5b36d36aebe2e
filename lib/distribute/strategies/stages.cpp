#include "distribute/strategies/stages.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/name_list.h"
#include "distribute/strategies/common.h"

namespace dtrain {

namespace {

/// Returns the index in `layers` of the layer called `name`. If `name` is a use of a block, returns the index
/// of the first layer of this use. Returns nullopt if neither a layer nor a use of a block has this name.
std::optional<size_t> place_of(const std::string& name, const std::vector<std::string>& layers) {
  auto found = std::find(layers.begin(), layers.end(), name);
  if (found == layers.end())
    found = std::find_if(layers.begin(), layers.end(),
                         [&](const std::string& layer) { return layer.starts_with(name + "/"); });
  if (found == layers.end()) return std::nullopt;
  return static_cast<size_t>(found - layers.begin());
}

}  // namespace

std::vector<int> named_stages(const Graph& graph, const std::vector<ConfigNode>& names,
                              Diagnostics& diagnostics) {
  const size_t before = diagnostics.count();
  const std::vector<std::string> layers = layer_names(graph);
  const std::vector<int> nodes = layer_nodes(graph);
  std::vector<int> stages(graph.nodes.size(), 0);
  size_t last = 0;  // index of the first layer of the previous stage
  const ConfigNode* last_name = nullptr;
  for (const ConfigNode& name : names) {
    const std::optional<size_t> place = place_of(name.text(), layers);
    if (!place) {
      std::string advice = suggestion(name.text(), layers);
      if (advice.empty()) advice = fmt::format("; the layers are {}", list_some(layers, 10));
      diagnostics.error(name, fmt::format("stages: '{}' is not a layer of the model{}", name.text(), advice));
      continue;
    }
    if (*place == 0)
      diagnostics.error(
          name, fmt::format("stages: '{}' is the first layer of the model, so the first stage would have no "
                            "layers; list only the layers at which the second and later stages begin",
                            name.text()));
    else if (last_name && *place == last)
      diagnostics.error(
          name, fmt::format("stages: '{}' begins at the same layer as '{}', so a stage would have no layers",
                            name.text(), last_name->text()));
    else if (last_name && *place < last)
      diagnostics.error(name, fmt::format("stages: '{}' comes before '{}' in the model; name layers in the "
                                          "model's order",
                                          name.text(), last_name->text()));
    for (auto i = static_cast<size_t>(nodes[*place]); i < stages.size(); ++i) ++stages[i];
    last = *place;
    last_name = &name;
  }
  if (diagnostics.count() != before) return {};
  settle_stages(graph, stages);
  return stages;
}

std::vector<std::string> stage_names(const Graph& graph, const std::vector<int>& stages) {
  std::vector<std::string> names;
  for (const int node : layer_nodes(graph))
    if (stages[static_cast<size_t>(node)] > static_cast<int>(names.size()))
      names.push_back(graph.nodes[static_cast<size_t>(node)].name);
  return names;
}

void settle_stages(const Graph& graph, std::vector<int>& stages) {
  for (size_t i = 0; i < stages.size(); ++i)
    if (graph.nodes[i].is_activation_of_previous) stages[i] = stages[i - 1];
  const std::vector<std::optional<int>> readers = first_readers(graph);
  for (const int input : graph.inputs)
    if (const auto& reader = readers[static_cast<size_t>(input)])
      stages[static_cast<size_t>(input)] = stages[static_cast<size_t>(*reader)];
}

}  // namespace dtrain
