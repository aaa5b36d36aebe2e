#include "interop/keras/export/export.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "checkpoint/hdf5_image.h"
#include "interop/graph_masks.h"
#include "interop/keras/export/graph_layers.h"
#include "interop/keras/export/mask_copies.h"
#include "interop/keras/export/model_config.h"
#include "interop/keras/files/class_paths.h"
#include "interop/keras/files/json.h"
#include "interop/keras/files/mask_rules.h"
#include "interop/layer_formats.h"
#include "interop/zip_writer.h"

namespace dtrain {

namespace {

/// The Keras version whose file format is written.
constexpr const char* kKerasVersion = "3.8.0";

/// Converts the name of an activation that Keras lacks to the notation of configuration files: "gelu_tanh"
/// gives "gelu: {approximate: true}". `name`: the name that keras_activation() returned.
std::string in_configuration(const std::string& name) {
  constexpr std::string_view kHardSigmoid = "hard_sigmoid_";
  if (name == "gelu_tanh") return "gelu: {approximate: true}";
  if (!name.starts_with(kHardSigmoid)) return name;
  return fmt::format("hard_sigmoid: {{slope: {}}}", name.substr(kHardSigmoid.size()));
}

/// Throws UserError if a config contains an activation that Keras lacks, because Keras could not load the
/// exported file. `config`: Keras's config of the node's layer, or of a layer that is an option of the node's
/// layer.
void check_activations(const GraphNode& node, const Json& config) {
  for (const char* option : {"activation", "recurrent_activation"}) {
    const Json* const activation = value_at(config, option);
    if (!activation || !activation->is_string()) continue;
    const std::string& name = activation->as_string();
    if (name == "gelu_tanh" || name.find_first_of("0123456789") != std::string::npos)
      throw UserError(fmt::format("{} '{}' cannot be exported to Keras, because Keras 3 has no {} `{}`",
                                  node.kind, node.name, option, in_configuration(name)));
  }
  for (const char* option : {"layer", "backward_layer"})  // layers inside Bidirectional and TimeDistributed
    if (const Json* const layer = value_at(config, option))
      if (const Json* const inner = value_at(*layer, "config")) check_activations(node, *inner);
}

/// Throws UserError if a layer uses a feature that Keras lacks.
void check_features(const Graph& graph) {
  for (const GraphNode& node : graph.nodes) {
    if (!node.layer) continue;
    const KerasLayerConfig keras = keras_config_of(node.layer);
    if (!keras.missing.empty())
      throw UserError(fmt::format("{} '{}' cannot be exported to Keras, because Keras has no {}", node.kind,
                                  node.name, keras.missing));
    check_activations(node, keras.config);
  }
}

/// Returns true if the layer becomes a TimeDistributed with an inner Softmax in Keras.
bool is_softmax_of_positions(const GraphNode& node) {
  const KerasLayerConfig keras = keras_config_of(node.layer);
  return keras.class_name == "TimeDistributed" &&
         text_at(keras.config.at("layer"), "class_name") == "Softmax";
}

/// Finds layers that read attention outputs at padded positions. These outputs differ between Keras and
/// dtrain: for a padded query, Keras returns the mean of all values, while dtrain returns the weighted
/// mean of the values that are not padding.
class PaddingOfAttention {
 public:
  explicit PaddingOfAttention(const Graph& graph) : graph_(graph) {}

  /// Throws UserError if the node uses attention outputs at padded positions. Must be called for all nodes in
  /// graph order.
  void visit(int number) {
    const GraphNode& node = graph_.nodes[static_cast<size_t>(number)];
    if (!node.layer) return;
    const std::string name = keras_config_of(node.layer).class_name;
    const bool is_masked = graph_.mask_of({number}) != ValueRef();
    const auto differing = std::find_if(node.inputs.begin(), node.inputs.end(),
                                        [&](ValueRef input) { return attentions_.count(input) != 0; });
    if (name == "MultiHeadAttention" || name == "GroupQueryAttention") {
      if (is_masked) attentions_[{number}] = number;
    } else if (differing != node.inputs.end() && keras_mask_rule(name) != KerasMaskRule::read) {
      const bool uses_padding = !is_masked || node.layer->creates_mask() || name == "GroupNormalization";
      if (uses_padding) refuse(attentions_.at(*differing), node);
      attentions_[{number}] = attentions_.at(*differing);
    }
  }

 private:
  void refuse(int attention, const GraphNode& reader) const {
    const GraphNode& its = graph_.nodes[static_cast<size_t>(attention)];
    throw UserError(
        fmt::format("{} '{}' cannot be exported to Keras: at padded positions, the outputs of Keras's "
                    "attention differ from dtrain's, and {} '{}' would read these outputs as data",
                    its.kind, its.name, reader.kind, reader.name));
  }

  const Graph& graph_;
  // maps each value that depends on masked attention to the node of that attention layer
  std::map<ValueRef, int> attentions_;
};

/// Throws UserError for layers that treat the masks of their inputs differently in Keras than in dtrain.
void check_masks(const Graph& graph) {
  for (const GraphNode& node : graph.nodes) {
    if (!node.layer || node.layer->creates_mask() || !has_masked_input(graph, node)) continue;
    const std::string name = keras_config_of(node.layer).class_name;
    const bool is_lost = keras_mask_rule(name) == KerasMaskRule::lost;
    const auto refuse = [&](const std::string& why) {
      throw UserError(
          fmt::format("{} '{}' cannot be exported to Keras, because {}", node.kind, node.name, why));
    };
    if (name == "Softmax" || is_softmax_of_positions(node))
      refuse("Keras's Softmax applies the mask of its input to the last axis; use `activation: softmax`");
    if (is_lost && !node.ignores_mask)
      refuse(fmt::format("Keras's {} does not pass on the mask of its input", name));
    if (!is_lost && node.ignores_mask)
      refuse(
          fmt::format("Keras's {} uses the mask of its input, but the layer has `ignore_mask: true`", name));
  }
  PaddingOfAttention attention(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) attention.visit(static_cast<int>(i));
}

class WeightsWriter {
 public:
  explicit WeightsWriter(SparseFile& target) : image_(target) {}

  void write(const ExportedModel& model, const std::vector<KerasLayer>& layers,
             const std::optional<KerasTraining>& training) {
    add_vars("", model.name);
    KerasClassNumbers numbers;
    for (const KerasLayer& layer : layers) {
      const GraphNode& node = model.graph->nodes[static_cast<size_t>(layer.node)];
      const std::string path = "/layers/" + numbers.next(keras_class_of(*model.graph, layer.node));
      add_vars(path, layer.name);
      if (node.layer) write_weights(model, layer.node, keras_config_of(node.layer).config, path);
    }
    if (training) write_optimizer(*training);
    image_.close();
  }

 private:
  /// Creates the group of a layer's variables. Returns its path.
  std::string add_vars(const std::string& path, const std::string& name) {
    const std::string vars = path + "/vars";
    const Hdf5Handle group = image_.make_group(vars);
    image_.write_text(group, "name", name);
    return vars;
  }

  /// Writes a layer's weights to the group of the layer, or to the groups of its parts.
  void write_weights(const ExportedModel& model, int number, const Json& config, const std::string& path) {
    const GraphNode& node = model.graph->nodes[static_cast<size_t>(number)];
    const auto& part_of = formats_of(node.kind).keras_part;
    std::string group = path + "/vars", last_part;
    int next = 0;
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      const std::string part = part_of ? part_of(config, node.parameters[i].name) : "";
      if (part != last_part) {
        group = add_vars(path + "/" + part, node.kind + "_" + part.substr(part.find('/') + 1));
        last_part = part;
        next = 0;
      }
      const std::span<const float> values = model.values(number, i);
      image_.write_array(fmt::format("{}/{}", group, next++),
                         {"", node.parameters[i].shape, DType::float32, values.data()});
    }
  }

  void write_optimizer(const KerasTraining& training) {
    const std::string group = add_vars("/optimizer", "optimizer");
    int next = 0;
    image_.write_number(fmt::format("{}/{}", group, next++), training.iteration);
    if (training.learning_rate)
      image_.write_array(fmt::format("{}/{}", group, next++),
                         {"", {}, DType::float32, &*training.learning_rate});
    for (const ArrayRef& slot : training.slots) image_.write_array(fmt::format("{}/{}", group, next++), slot);
    if (training.last_number)
      image_.write_array(fmt::format("{}/{}", group, next++),
                         {"", {}, DType::float32, &*training.last_number});
  }

  Hdf5Image image_;
};

}  // namespace

std::vector<std::string> export_keras(const ExportedModel& model,
                                      const std::optional<KerasTraining>& training, const std::string& path) {
  check_features(*model.graph);
  check_masks(*model.graph);
  const Graph graph = with_mask_copies(*model.graph);
  const std::vector<KerasLayer> layers = keras_layers(graph);
  Json config = keras_model_config(graph, model.name, layers, KerasForm::keras_3);
  if (training) config.set("compile_config", training->compile_config);
  SparseFile weights;
  ExportedModel written = model;
  written.graph = &graph;
  WeightsWriter(weights).write(written, layers, training);
  ZipWriter archive(path);
  archive.add(
      "metadata.json",
      Json::object().set("keras_version", kKerasVersion).set("date_saved", "1980-01-01@00:00:00").dump());
  archive.add("config.json", config.dump());
  archive.add("model.weights.h5", weights.parts());
  // Keras ignores additional entries of the archive.
  if (!model.metadata.entries().empty()) archive.add("dtrain.json", model.metadata.dump());
  archive.finish();
  return {path};
}

}  // namespace dtrain
