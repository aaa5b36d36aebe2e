#include "interop/keras/export/model_config.h"

#include <algorithm>

#include "interop/layer_formats.h"

namespace dtrain {

namespace {

/// Returns the nodes that call each layer, in node order (which is topological), indexed by the layer's first
/// node.
std::vector<std::vector<int>> calls_of(const Graph& graph) {
  std::vector<std::vector<int>> calls(graph.nodes.size());
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i)
    calls[static_cast<size_t>(graph.owner(i))].push_back(i);
  return calls;
}

/// Returns the shape of a batch: [null, 28, 28, 1].
Json batch_shape(const Shape& sample) {
  Json shape = Json::array();
  shape.push(Json());
  for (const int64_t extent : sample) shape.push(extent);
  return shape;
}

Json input_config(const GraphNode& node, const std::string& name, KerasForm form) {
  return Json::object()
      .set(form == KerasForm::keras_3 ? "batch_shape" : "batch_input_shape",
           batch_shape(node.outputs[0].shape))
      .set("dtype", name_of(node.outputs[0].dtype))
      .set("name", name);
}

/// The dtype is always float32, the type of weights and checkpoints, independent of the run's precision and
/// of Keras's default.
Json layer_config(const GraphNode& node, const std::string& name) {
  Json config = Json::object().set("name", name).set("trainable", node.trainable).set("dtype", "float32");
  const Json options = keras_config_of(node.layer).config;
  for (const auto& [key, value] : options.entries()) config.set(key, value);
  return config;
}

}  // namespace

Json keras_model_config(const Graph& graph, const std::string& name, const std::vector<KerasLayer>& layers,
                        KerasForm form) {
  const bool is_keras_3 = form == KerasForm::keras_3;
  const std::vector<GraphNode>& nodes = graph.nodes;
  std::vector<std::string> names(nodes.size());
  for (const KerasLayer& layer : layers) names[static_cast<size_t>(layer.node)] = layer.name;
  const std::vector<std::vector<int>> calls = calls_of(graph);
  /// Returns [name of the layer, index of its call, index of the output].
  const auto reference_to = [&](ValueRef value) {
    const int node = is_keras_layer(nodes[static_cast<size_t>(value.node)]) ? value.node : value.node - 1;
    const auto layer = static_cast<size_t>(graph.owner(node));
    const auto call = std::find(calls[layer].begin(), calls[layer].end(), node) - calls[layer].begin();
    return Json::array().push(names[layer]).push(static_cast<int64_t>(call)).push(value.output);
  };
  /// Returns Keras 3's form of a call's inputs: one tensor, or a list of several.
  const auto call_of_keras_3 = [&](const std::vector<ValueRef>& inputs) {
    Json tensors = Json::array();
    for (const ValueRef& input : inputs)
      tensors.push(Json::object()
                       .set("class_name", "__keras_tensor__")
                       .set("config", Json::object()
                                          .set("shape", batch_shape(graph.spec(input).shape))
                                          .set("dtype", name_of(graph.spec(input).dtype))
                                          .set("keras_history", reference_to(input))));
    Json arguments = Json::array().push(inputs.size() == 1 ? tensors.items().front() : tensors);
    return Json::object().set("args", std::move(arguments)).set("kwargs", Json::object());
  };
  Json written = Json::array();
  for (const KerasLayer& layer : layers) {
    const GraphNode& node = nodes[static_cast<size_t>(layer.node)];
    const bool is_input = node.kind == "input";
    Json inbound = Json::array();
    for (const int call : calls[static_cast<size_t>(layer.node)]) {
      if (is_input) break;
      if (is_keras_3) {
        inbound.push(call_of_keras_3(nodes[static_cast<size_t>(call)].inputs));
        continue;
      }
      Json arguments = Json::array();
      for (const ValueRef& input : nodes[static_cast<size_t>(call)].inputs) {
        Json argument = reference_to(input);
        arguments.push(std::move(argument.push(Json::object())));
      }
      inbound.push(std::move(arguments));
    }
    Json entry = Json::object();
    if (is_keras_3) entry.set("module", "keras.layers").set("registered_name", Json());
    entry.set("class_name", is_input ? std::string("InputLayer") : keras_config_of(node.layer).class_name)
        .set("config", is_input ? input_config(node, layer.name, form) : layer_config(node, layer.name))
        .set("name", layer.name)
        .set("inbound_nodes", std::move(inbound));
    written.push(std::move(entry));
  }
  Json input_layers = Json::array(), output_layers = Json::array();
  for (const int input : graph.inputs) input_layers.push(reference_to({input}));
  for (const ValueRef& output : graph.outputs) output_layers.push(reference_to(output));
  // Keras 3 distinguishes a single tensor from a list of one: models with one input or output use a single
  // tensor.
  for (Json* ends : {&input_layers, &output_layers})
    if (is_keras_3 && ends->items().size() == 1) *ends = Json(ends->items().front());
  Json config = Json::object()
                    .set("name", keras_name(name, "model"))
                    .set("trainable", true)
                    .set("layers", std::move(written))
                    .set("input_layers", std::move(input_layers))
                    .set("output_layers", std::move(output_layers));
  Json model = Json::object();
  if (is_keras_3) model.set("module", "keras.src.models.functional").set("registered_name", "Functional");
  model.set("class_name", "Functional").set("config", std::move(config));
  if (is_keras_3) model.set("build_config", Json::object().set("input_shape", Json()));
  return model;
}

}  // namespace dtrain
