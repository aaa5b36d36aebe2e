#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "interop/keras/export/options.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/recurrent.h"
#include "interop/layers/table.h"

namespace dtrain {

namespace {

/// Returns a layer, {kind: options}, with all of its options; null if the layer is invalid.
ConfigNode resolved_layer(const ConfigNode& layer) {
  Diagnostics mistakes;
  return registry<Layer>().parse(layer, mistakes).resolved;
}

/// Returns whether a resolved layer, {kind: options}, goes backwards.
bool goes_backwards(const ConfigNode& layer) {
  return layer.entries().front().second.find("go_backwards")->text() == "true";
}

/// Returns the layer that bidirectional makes from a resolved layer, {kind: options}.
ConfigNode mirrored_layer(const ConfigNode& layer) {
  const auto& [kind, options] = layer.entries().front();
  const ConfigNode opposite = ConfigNode::scalar(goes_backwards(layer) ? "false" : "true");
  return ConfigNode::mapping({ConfigNode::entry(kind.text(), options.with("go_backwards", opposite))});
}

/// Converts the options to Keras's config. Keras sets go_backwards in both layers if the forward layer has
/// this option and the config has no backward_layer.
KerasLayerConfig bidirectional_to_keras(const ConfigNode& options) {
  const std::string& mode = options.find("merge_mode")->text();
  const ConfigNode layer = resolved_layer(*options.find("layer"));
  ConfigNode backward = *options.find("backward_layer");
  if (backward.is_null() && goes_backwards(layer)) backward = mirrored_layer(layer);
  KerasLayerConfig keras{"Bidirectional", Json::object()};
  keras.config.set("layer", keras_inner_layer(layer, keras.missing))
      .set("merge_mode", mode == "none" ? Json() : Json(mode));
  if (!backward.is_null()) keras.config.set("backward_layer", keras_inner_layer(backward, keras.missing));
  return keras;
}

/// Returns whether `backward` is the layer that bidirectional makes from `layer`. Both are {kind: options}.
bool is_mirrored(const ConfigNode& layer, const ConfigNode& backward) {
  const ConfigNode a = resolved_layer(layer), b = resolved_layer(backward);
  return a.is_mapping() && b.is_mapping() && mirrored_layer(a).to_yaml() == b.to_yaml();
}

/// Converts Keras's config. Keras 3 also writes the backward layer if it is a copy of the forward layer.
ConfigNode bidirectional_from_keras(KerasLayerReader& reader) {
  const auto inner = [&](const char* key) {
    return reader.layer(key, {"LSTM", "GRU", "SimpleRNN"}, {"zero_output_for_mask"});
  };
  const ConfigNode layer = inner("layer"), backward = inner("backward_layer");
  const Json* const mode = reader.find("merge_mode");
  reader.skip({"merge_mode", "return_sequences", "return_state", "go_backwards", "stateful"});
  reader.options({});
  if (layer.is_null()) return ConfigNode::mapping({});
  std::vector<ConfigNode::Entry> options = {ConfigNode::entry("layer", layer)};
  options.push_back(ConfigNode::entry("merge_mode", mode && mode->is_string()
                                                        ? ConfigNode::scalar(mode->as_string())
                                                        : ConfigNode::scalar("none")));
  if (!backward.is_null() && !is_mirrored(layer, backward))
    options.push_back(ConfigNode::entry("backward_layer", backward));
  return ConfigNode::mapping(std::move(options));
}

/// Returns the cell of Keras's layer that has a parameter, such as "forward_kernel".
std::string cell_of_parameter(const Json&, const std::string& parameter) {
  return parameter.starts_with("forward_") ? "forward_layer/cell" : "backward_layer/cell";
}

/// Returns both directions of a bidirectional layer. Throws UserError if `tool` cannot merge their outputs.
std::array<Recurrent, 2> directions_of(const GraphNode& node, const Json& options, const char* tool) {
  if (option_is(options, "merge_mode", "none"))
    throw UserError(
        fmt::format("bidirectional '{}' cannot be exported to {} yet: it has two outputs", node.name, tool));
  const auto& [kind, own] = options.at("layer").entries().front();
  Recurrent forward{.kind = kind, .options = own, .prefix = "forward_", .part = "forward_layer"};
  Recurrent backward = forward;
  if (const Json& other = options.at("backward_layer"); other.is_object()) {
    backward.kind = other.entries().front().first;
    backward.options = other.entries().front().second;
  } else {
    backward.options.set("go_backwards", !forward.goes_backwards());
  }
  backward.prefix = "backward_";
  backward.part = "backward_layer";
  // The layer reverses the states of the second direction. If that direction goes backwards, the reversed
  // states have the order of the input.
  if (is_true_at(own, "return_sequences") && !backward.goes_backwards())
    throw UserError(fmt::format("bidirectional '{}' cannot be exported to {} yet: its layer goes backwards",
                                node.name, tool));
  backward.in_input_order = true;
  return {forward, backward};
}

void bidirectional_to_onnx(OnnxLayer& layer) {
  std::vector<std::string> both;
  for (const Recurrent& one : directions_of(layer.node(), layer.options(), "ONNX"))
    both.push_back(add_onnx_recurrence(layer, one));
  const std::string mode = layer.options().at("merge_mode").as_string();
  const auto axis = static_cast<int64_t>(layer.output_spec().shape.rank());
  std::string merged;
  if (mode == "concat") merged = layer.add("Concat", both, {{"axis", axis}});
  if (mode == "mul") merged = layer.add("Mul", both);
  if (mode == "sum" || mode == "ave") merged = layer.add("Add", both);
  if (mode == "ave") merged = layer.add("Mul", {merged, layer.constant(0.5f)});
  if (const std::string mask = layer.mask(); !mask.empty() && axis == 2) {  // masked steps give 0
    const std::string column =
        layer.add("Reshape", {mask, layer.integers({0, layer.output_spec().shape[0], 1})});
    merged = layer.add("Mul", {merged, column});
  }
  layer.set_output(merged, ExportLayout::channels_last);
}

void bidirectional_to_torch(TorchLayer& layer) {
  const std::array<Recurrent, 2> directions = directions_of(layer.node(), layer.options(), "PyTorch");
  const TorchRecurrence forward = recurrence_in_torch(layer, directions[0]),
                        backward = recurrence_in_torch(layer, directions[1]);
  layer.set_module(fmt::format("nn.ModuleDict({{\"{}\": {}, \"{}\": {}}})", directions[0].part,
                               forward.constructor, directions[1].part, backward.constructor));
  const std::string a = forward.add(layer), b = backward.add(layer);
  const std::string mode = layer.options().at("merge_mode").as_string();
  std::string merged = layer.add(mode == "concat" ? fmt::format("torch.cat(({}, {}), -1)", a, b)
                                 : mode == "mul"  ? fmt::format("{} * {}", a, b)
                                 : mode == "sum"  ? fmt::format("{} + {}", a, b)
                                                  : fmt::format("({} + {}) / 2", a, b));
  if (const std::string mask = layer.mask(); !mask.empty() && layer.output_spec().shape.rank() == 2)
    merged = layer.add(fmt::format("{} * {}.unsqueeze(-1)", merged, mask));  // masked steps give 0
  layer.set_output(merged, ExportLayout::channels_last);
}

}  // namespace

void add_bidirectional_formats(std::vector<LayerFormats>& table) {
  table.push_back({
      .kind = "bidirectional",
      .to_keras = bidirectional_to_keras,
      .from_keras = bidirectional_from_keras,
      .onnx = bidirectional_to_onnx,
      .torch = bidirectional_to_torch,
      .keras_part = cell_of_parameter,
      .keras_further_inputs = "initial_state",
  });
}

}  // namespace dtrain
