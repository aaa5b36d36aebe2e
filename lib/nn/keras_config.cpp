// The graph as Keras's Functional model writes it in `model_config`, in the form of tf.keras 2, which Keras 3
// reads as well.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "nn/graph.h"

namespace dtrain {

namespace {

/// Keras 3 refuses names with '/': blocks' layers get a '.' there.
std::map<std::string, std::string> keras_names(const Graph& graph) {
  std::map<std::string, std::string> names;
  std::set<std::string> taken;
  for (const GraphNode& node : graph.nodes)
    if (node.name.find('/') == std::string::npos) taken.insert(node.name);
  for (const GraphNode& node : graph.nodes) {
    std::string name = node.name;
    if (name.find('/') != std::string::npos) {
      std::replace(name.begin(), name.end(), '/', '.');
      const std::string base = name;
      for (int number = 1; !taken.insert(name).second; ++number) name = fmt::format("{}_{}", base, number);
    }
    names[node.name] = std::move(name);
  }
  return names;
}

Json reference(const std::string& name) {
  Json triple = Json::array();
  triple.push(name).push(0).push(0);
  return triple;
}

Json input_config(const GraphNode& node, const std::string& name) {
  Json shape = Json::array();
  shape.push(Json());
  for (const int64_t extent : node.output.shape) shape.push(extent);
  return Json::object()
      .set("batch_input_shape", std::move(shape))
      .set("dtype", name_of(node.output.dtype))
      .set("name", name);
}

Json layer_config(const GraphNode& node, const std::string& name) {
  Json config = Json::object().set("name", name).set("trainable", node.trainable);
  const Json options = node.layer->keras_config();
  for (const auto& [key, value] : options.entries()) config.set(key, value);
  return config;
}

}  // namespace

Json Graph::keras_model_config(const std::string& name) const {
  const auto names = keras_names(*this);
  const auto keras_name = [&](int node) { return names.at(layer_name(node)); };
  Json layers = Json::array();
  for (const GraphNode& node : nodes) {
    if (node.is_activation_of_previous) continue;  // the `activation` of the layer before it
    const bool is_input = node.kind == "input";
    const std::string& own = names.at(node.name);
    Json calls = Json::array();
    if (!is_input) {
      Json arguments = Json::array();
      for (const int input : node.inputs) {
        Json argument = reference(keras_name(input));
        arguments.push(std::move(argument.push(Json::object())));
      }
      calls.push(std::move(arguments));
    }
    layers.push(Json::object()
                    .set("class_name", is_input ? std::string("InputLayer") : node.layer->keras_class())
                    .set("config", is_input ? input_config(node, own) : layer_config(node, own))
                    .set("name", own)
                    .set("inbound_nodes", std::move(calls)));
  }
  Json input_layers = Json::array(), output_layers = Json::array();
  for (const int input : inputs) input_layers.push(reference(keras_name(input)));
  for (const int output : outputs) output_layers.push(reference(keras_name(output)));
  Json config = Json::object()
                    .set("name", name)
                    .set("trainable", true)
                    .set("layers", std::move(layers))
                    .set("input_layers", std::move(input_layers))
                    .set("output_layers", std::move(output_layers));
  return Json::object().set("class_name", "Functional").set("config", std::move(config));
}

}  // namespace dtrain
