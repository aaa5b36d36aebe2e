#include "interop/keras/export/model_config.h"

#include <algorithm>

#include "interop/keras/export/graph_layers.h"
#include "interop/keras/export/options.h"
#include "interop/keras/files/inner_model.h"
#include "interop/keras/files/keras_model.h"
#include "interop/layer_formats.h"

namespace dtrain {

namespace {

/// Returns the nodes that call each layer, in node order, indexed by the layer's first node.
std::vector<std::vector<int>> calls_of(const Graph& graph) {
  std::vector<std::vector<int>> calls(graph.nodes.size());
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i)
    calls[static_cast<size_t>(graph.owner(i))].push_back(i);
  return calls;
}

Json input_config(const GraphNode& node, const std::string& name, KerasForm form) {
  return Json::object()
      .set(form == KerasForm::keras_3 ? "batch_shape" : "batch_input_shape",
           keras_batch_shape(node.outputs[0].shape))
      .set("dtype", name_of(node.outputs[0].dtype))
      .set("name", name);
}

/// Returns the config of a layer. Its dtype is always float32, whatever the run's precision and Keras's
/// default are, because weights and checkpoints are float32.
Json layer_config(const Graph& graph, int number, const std::string& name) {
  const GraphNode& node = graph.nodes[static_cast<size_t>(number)];
  const KerasLayerConfig keras = keras_config_of(node.layer);
  Json config = Json::object().set("name", name);
  if (keras.has_trainable) config.set("trainable", node.trainable);
  config.set("dtype", "float32");
  // The penalty on an activation is an option of the Keras layer that computes the activation.
  const bool has_activation = number + 1 < static_cast<int>(graph.nodes.size()) &&
                              graph.nodes[static_cast<size_t>(number) + 1].is_activation_of_previous &&
                              !is_keras_layer(graph, number + 1);
  const auto& regularizer =
      graph.nodes[static_cast<size_t>(number) + (has_activation ? 1 : 0)].activity_regularizer;
  if (regularizer)
    config.set("activity_regularizer", *keras_options(ConfigNode::mapping({ConfigNode::entry(
                                                          "activity_regularizer", regularizer->resolved)}))
                                            .find("activity_regularizer"));
  for (const auto& [key, value] : keras.config.entries()) config.set(key, value);
  if (const auto& complete = formats_of(node.kind).complete_keras) complete(graph, node, config);
  return config;
}

/// Writes the configuration of a functional model.
class ModelWriter {
 public:
  ModelWriter(const Graph& graph, const std::vector<KerasLayer>& layers, KerasForm form)
      : graph_(graph), layers_(layers), form_(form), names_(graph.nodes.size()), calls_(calls_of(graph)) {
    for (const KerasLayer& layer : layers) names_[static_cast<size_t>(layer.node)] = layer.name;
  }

  Json model(const std::string& name) const {
    Json written = Json::array();
    for (const KerasLayer& layer : layers_) written.push(layer_entry(layer));
    std::vector<ValueRef> inputs;
    for (const int input : graph_.inputs) inputs.push_back({input});
    Json config = Json::object()
                      .set("name", keras_name(name, "model"))
                      .set("trainable", true)
                      .set("layers", std::move(written))
                      .set("input_layers", ends(inputs))
                      .set("output_layers", ends(graph_.outputs));
    Json model = Json::object();
    if (is_keras_3()) set_model_class(model);
    model.set("class_name", kKerasModel).set("config", std::move(config));
    if (is_keras_3()) model.set("build_config", Json::object().set("input_shape", Json()));
    return model;
  }

 private:
  bool is_keras_3() const { return form_ == KerasForm::keras_3; }
  static void set_model_class(Json& entry) {
    entry.set("module", "keras.src.models.functional").set("registered_name", kKerasModel);
  }
  const GraphNode& node(int index) const { return graph_.nodes[static_cast<size_t>(index)]; }

  /// Returns Keras's reference to a value: [name of the layer, index of the call, index of the output].
  Json reference_to(ValueRef value) const {
    const int of = is_keras_layer(graph_, value.node) ? value.node : value.node - 1;
    const auto layer = static_cast<size_t>(graph_.owner(of));
    const auto call = std::find(calls_[layer].begin(), calls_[layer].end(), of) - calls_[layer].begin();
    return Json::array().push(names_[layer]).push(static_cast<int64_t>(call)).push(value.output);
  }

  /// Returns the list of the model's inputs or outputs. In the Keras 3 format, returns a single tensor
  /// instead of a list with one tensor, because Keras 3 distinguishes between them. In this list, Keras
  /// counts the calls of a model within the model from 1. In the inputs of layers, it counts them from 0.
  Json ends(const std::vector<ValueRef>& values) const {
    Json references = Json::array();
    for (const ValueRef& value : values) {
      const Json reference = reference_to(value);
      const bool counts_from_one = keras_class_of(graph_, graph_.owner(value.node)) == kKerasModel;
      references.push(Json::array()
                          .push(reference.items()[0])
                          .push(reference.items()[1].as_int() + (counts_from_one ? 1 : 0))
                          .push(reference.items()[2]));
    }
    if (is_keras_3() && values.size() == 1) return Json(references.items().front());
    return references;
  }

  /// Returns the inputs of a call in the Keras 3 format: one tensor, or a list of several tensors. For some
  /// layers, all inputs except the first are passed as a keyword argument.
  Json call_of_keras_3(int number) const {
    const GraphNode& call = node(number);
    const std::vector<ValueRef>& inputs = call.inputs;
    const LayerFormats& formats = formats_of(call.kind);
    const std::string& further = formats.keras_further_inputs;
    Json tensors = Json::array();
    for (const ValueRef& input : inputs)
      tensors.push(Json::object()
                       .set("class_name", "__keras_tensor__")
                       .set("config", Json::object()
                                          .set("shape", keras_batch_shape(graph_.spec(input).shape))
                                          .set("dtype", name_of(graph_.spec(input).dtype))
                                          .set("keras_history", reference_to(input))));
    if (formats.keras_call) return formats.keras_call(options_of(call.layer), tensors.items());
    if (inputs.size() > 1 && !further.empty()) {
      Json others = Json::array();
      for (size_t i = 1; i < inputs.size(); ++i) others.push(tensors.items()[i]);
      return Json::object()
          .set("args", Json::array().push(tensors.items().front()))
          .set("kwargs", Json::object().set(further, std::move(others)));
    }
    Json arguments = Json::array().push(inputs.size() == 1 ? tensors.items().front() : tensors);
    Json keywords = Json::object();
    if (graph_.is_tied(number)) keywords.set("reverse", true);
    return Json::object().set("args", std::move(arguments)).set("kwargs", std::move(keywords));
  }

  Json call_of_keras_2(const std::vector<ValueRef>& inputs) const {
    Json arguments = Json::array();
    for (const ValueRef& input : inputs) {
      Json argument = reference_to(input);
      arguments.push(std::move(argument.push(Json::object())));
    }
    return arguments;
  }

  Json layer_entry(const KerasLayer& layer) const {
    const GraphNode& its = node(layer.node);
    const bool is_input = its.kind == "input";
    Json inbound = Json::array();
    if (!is_input)
      for (const int call : calls_[static_cast<size_t>(layer.node)])
        inbound.push(is_keras_3() ? call_of_keras_3(call) : call_of_keras_2(node(call).inputs));
    Json entry = Json::object();
    const std::string class_name = keras_class_of(graph_, layer.node);
    if (is_keras_3()) entry.set("module", "keras.layers").set("registered_name", Json());
    if (class_name == kKerasModel) set_model_class(entry);
    entry.set("class_name", class_name)
        .set("config",
             is_input ? input_config(its, layer.name, form_) : layer_config(graph_, layer.node, layer.name))
        .set("name", layer.name)
        .set("inbound_nodes", std::move(inbound));
    return entry;
  }

  const Graph& graph_;
  const std::vector<KerasLayer>& layers_;
  const KerasForm form_;
  std::vector<std::string> names_;       // indexed by node
  std::vector<std::vector<int>> calls_;  // for each node, all nodes that call its layer
};

}  // namespace

Json keras_model_config(const Graph& graph, const std::string& name, const std::vector<KerasLayer>& layers,
                        KerasForm form) {
  const bool needs_keras_3 = std::any_of(layers.begin(), layers.end(), [&](const KerasLayer& layer) {
    const GraphNode& node = graph.nodes[static_cast<size_t>(layer.node)];
    const std::string class_name = keras_class_of(graph, layer.node);
    return node.kind != "input" && (formats_of(node.kind).keras_call ||
                                    class_name == kKerasReversibleEmbedding || class_name == kKerasModel);
  });
  // Keras 3 does not read the initial states of recurrent layers in the Keras 2 format.
  const bool has_initial_states =
      std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const GraphNode& node) {
        return node.inputs.size() > 1 && !formats_of(node.kind).keras_further_inputs.empty();
      });
  if (needs_keras_3 || has_initial_states) form = KerasForm::keras_3;
  return ModelWriter(graph, layers, form).model(name);
}

}  // namespace dtrain
