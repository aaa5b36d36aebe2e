#include "interop/keras/import/weights.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "interop/keras/files/class_paths.h"
#include "interop/keras/files/json.h"
#include "interop/keras/files/restored_layers.h"

namespace dtrain {

namespace {

std::string last_part(std::string_view name) {
  name = name.substr(0, name.rfind(':') == std::string_view::npos ? name.size() : name.rfind(':'));
  const size_t slash = name.rfind('/');
  return std::string(slash == std::string_view::npos ? name : name.substr(slash + 1));
}

/// Maps each layer of the file to its arrays.
using Found = std::map<const KerasModelLayer*, std::vector<const KerasWeight*>>;

/// Finds the node of the graph that corresponds to a layer of the file.
class Parameters {
 public:
  Parameters(const ImportedModel& imported, const Graph& graph) {
    std::map<std::string, const GraphNode*> nodes;
    for (const GraphNode& node : graph.nodes)
      if (!node.is_activation_of_previous && node.shared_with < 0) nodes.emplace(node.name, &node);
    for (const auto& [layer, name] : imported.names)
      if (const auto node = nodes.find(name); node != nodes.end()) nodes_.emplace(layer, node->second);
  }

  /// Returns null if the layer is not in the graph.
  const GraphNode* node(const KerasModelLayer& layer) const {
    const auto found = nodes_.find(&layer);
    return found == nodes_.end() ? nullptr : found->second;
  }

 private:
  std::map<const KerasModelLayer*, const GraphNode*> nodes_;
};

/// Calls `work` for each layer of a model, including the layers of nested models, in Keras's order.
void for_each_layer(const KerasModel& model, const std::function<void(const KerasModelLayer&)>& work) {
  for (const KerasModelLayer& layer : model.layers) {
    if (layer.model) {
      for_each_layer(*layer.model, work);
    } else {
      work(layer);
    }
  }
}

/// Assigns the weights of one group to the layers of a model. The group contains first the trained weights of
/// all layers, layer by layer, and then the other weights of all layers.
void deal(const KerasModelLayer& outer, const KerasWeightGroup& group, const Parameters& parameters,
          Found& found) {
  if (!outer.model) {
    for (const KerasWeight& weight : group.weights) found[&outer].push_back(&weight);
    return;
  }
  std::set<const KerasModelLayer*> seen;
  std::vector<const KerasModelLayer*> layers;
  for_each_layer(*outer.model, [&](const KerasModelLayer& layer) {
    if (seen.insert(&layer).second) layers.push_back(&layer);
  });
  size_t next = 0;
  for (const bool trained : {true, false})
    for (const KerasModelLayer* layer : layers) {
      const GraphNode* node = parameters.node(*layer);
      if (!node) continue;
      for (const ParameterSpec& parameter : node->parameters) {
        const bool is_trained = layer->trainable && !parameter.moving_average;
        if (is_trained != trained) continue;
        if (next == group.weights.size())
          throw UserError(
              fmt::format("'{}': the file has only {} for the layers of this model, and none is left for the "
                          "layer '{}'",
                          outer.name, format_plural(std::ssize(group.weights), "weight array"), layer->name));
        found[layer].push_back(&group.weights[next++]);
      }
    }
  if (next != group.weights.size())
    throw UserError(fmt::format("'{}': expected {}, found {}", outer.name,
                                format_plural(static_cast<int64_t>(next), "weight array"),
                                group.weights.size()));
}

Found find_in_layers(const KerasModel& model, const Parameters& parameters, const KerasWeights& weights) {
  std::map<std::string, const KerasWeightGroup*> groups;
  for (const KerasWeightGroup& group : weights.groups) groups.emplace(group.name, &group);
  Found found;
  // For models within a Sequential, Keras 1 writes groups whose names are not in the configuration. These
  // groups have the same order as the models.
  std::set<std::string_view> names;
  for (const KerasModelLayer& layer : model.layers) names.insert(layer.name);
  std::vector<const KerasWeightGroup*> unnamed;
  for (const KerasWeightGroup& group : weights.groups)
    if (!names.contains(group.name)) unnamed.push_back(&group);
  size_t next = 0;
  for (const KerasModelLayer& layer : model.layers) {
    if (const auto group = groups.find(layer.name); group != groups.end()) {
      deal(layer, *group->second, parameters, found);
    } else if (layer.model && next < unnamed.size()) {
      deal(layer, *unnamed[next++], parameters, found);
    }
  }
  return found;
}

/// Determines the paths of the layers' groups in the layout `vars`. The name of a group is the layer's class
/// with a number, counted within each model. In functional models, tf.keras 2 counted layers with weights
/// twice, which changes the numbers.
class VarsPaths {
 public:
  VarsPaths(std::string container, bool counts_twice)
      : container_(std::move(container)), counts_twice_(counts_twice) {}

  std::map<const KerasModelLayer*, std::string> of(
      const KerasModel& model, const std::function<bool(const KerasModelLayer&)>& has_weights) {
    add(model, "", has_weights);
    return std::move(paths_);
  }

 private:
  void add(const KerasModel& model, const std::string& prefix,
           const std::function<bool(const KerasModelLayer&)>& has_weights) {
    KerasClassNumbers numbers;
    for (const KerasModelLayer& layer : model.layers) {
      const int count = counts_twice_ && has_weights(layer) ? 2 : 1;
      const std::string path = prefix + container_ + "/" + numbers.next(layer.file_class(), count);
      if (layer.model) {
        add(*layer.model, path + "/", has_weights);
      } else {
        paths_.emplace(&layer, path);
      }
    }
  }

  std::string container_;
  bool counts_twice_;
  std::map<const KerasModelLayer*, std::string> paths_;
};

/// Returns the paths of the groups that may contain the weights of a layer. `path`: the path of the layer.
/// The weights of a TimeDistributed belong to its inner layer, which may be another TimeDistributed.
std::vector<std::string> owners_of(const KerasModelLayer& layer, const std::string& path) {
  std::vector<std::string> owners = {path};
  const Json* config = &layer.config;
  while (const Json* const inner = config ? value_at(*config, "layer") : nullptr) {
    owners.push_back(owners.back() + std::string(kKerasWrappedLayer));
    config = value_at(*inner, "config");
  }
  return owners;
}

Found find_in_vars(const KerasModel& model, const Parameters& parameters, const KerasWeights& weights) {
  std::map<std::string, const KerasWeightGroup*> groups;
  for (const KerasWeightGroup& group : weights.groups) groups.emplace(group.name, &group);
  const std::function<bool(const KerasModelLayer&)> has_weights = [&](const KerasModelLayer& layer) {
    if (!layer.model) {
      const GraphNode* node = parameters.node(layer);
      return node && !node->parameters.empty();
    }
    bool any = false;
    for_each_layer(*layer.model, [&](const KerasModelLayer& one) { any = any || has_weights(one); });
    return any;
  };
  Found best;
  const std::pair<const char*, bool> layouts[] = {
      {"layers", false}, {"_layer_checkpoint_dependencies", true}, {"_layer_checkpoint_dependencies", false}};
  for (const auto& [container, counts_twice] : layouts) {
    Found found;
    for (const auto& [layer, path] : VarsPaths(container, counts_twice).of(model, has_weights)) {
      const auto add = [&, of = layer](const std::string& name) {
        if (const auto group = groups.find(name); group != groups.end())
          for (const KerasWeight& weight : group->second->weights) found[of].push_back(&weight);
      };
      for (const std::string& owner : owners_of(*layer, path)) {
        add(owner);
        for (const KerasLayerPart& part : kKerasLayerParts) add(fmt::format("{}/{}", owner, part.group));
      }
      for (const KerasLayerPart& part : parts_of_restored(*layer))
        add(fmt::format("{}/{}", path, part.group));
    }
    if (found.size() > best.size()) best = std::move(found);
  }
  return best;
}

/// Matches a layer's weights to its parameters by name and returns them in the order of the parameters. If
/// the names do not match, keeps the order of the file.
std::vector<const KerasWeight*> in_order(const GraphNode& node, std::vector<const KerasWeight*> weights) {
  std::vector<const KerasWeight*> ordered;
  for (const ParameterSpec& parameter : node.parameters)
    for (const KerasWeight* weight : weights)
      if (last_part(weight->name) == parameter.name) ordered.push_back(weight);
  return ordered.size() == node.parameters.size() && ordered.size() == weights.size() ? ordered : weights;
}

}  // namespace

std::map<std::string, KerasWeight> match_weights(const KerasModel& file_model, const ImportedModel& imported,
                                                 const Graph& graph, const KerasWeights& weights,
                                                 KerasLayout layout, const KernelLayout& kernels) {
  const Parameters parameters(imported, graph);
  const Found found = layout == KerasLayout::layers ? find_in_layers(file_model, parameters, weights)
                                                    : find_in_vars(file_model, parameters, weights);
  std::map<std::string, KerasWeight> matched;
  std::vector<std::string> problems;
  for (const auto& [layer, name] : imported.names) {
    const GraphNode* node = parameters.node(*layer);
    if (!node || node->parameters.empty()) continue;
    const auto group = found.find(layer);
    const std::vector<const KerasWeight*> arrays =
        group == found.end() ? std::vector<const KerasWeight*>() : in_order(*node, group->second);
    if (arrays.size() != node->parameters.size()) {
      problems.push_back(fmt::format("{}: expected {}, found {}", name,
                                     format_plural(std::ssize(node->parameters), "weight"), arrays.size()));
      continue;
    }
    for (size_t i = 0; i < arrays.size(); ++i) {
      const ParameterSpec& parameter = node->parameters[i];
      // A kernel with a wrong number of elements is not converted, so that the message below reports its
      // shape in the file. Empty arrays are not converted either, because their other dimensions may have any
      // size.
      const Shape& shape = arrays[i]->shape;
      const bool is_kernel = parameter.name == "kernel" && std::count(shape.begin(), shape.end(), 0) == 0 &&
                             shape.elements() == parameter.shape.elements();
      KerasWeight array = is_kernel ? restored_kernel(*layer, *arrays[i], kernels) : *arrays[i];
      if (parameter.name == "alpha" && imported.moved_channels.contains(layer))
        array = with_channels_last(array);
      if (!array.values || array.shape != parameter.shape)
        problems.push_back(fmt::format("{}/{}: expected {} floats, found {} {} in the array '{}'", name,
                                       parameter.name, parameter.shape.str(), array.shape.str(),
                                       array.values ? "floats" : "values of another type", array.name));
      matched.emplace(name + "/" + parameter.name, std::move(array));
    }
  }
  if (!problems.empty())
    throw UserError(
        fmt::format("the file's weights do not fit its model:\n  {}", fmt::join(problems, "\n  ")));
  return matched;
}

}  // namespace dtrain
