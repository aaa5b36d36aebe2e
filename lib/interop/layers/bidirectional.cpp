#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "interop/keras/export/options.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/recurrent.h"
#include "interop/layers/table.h"

namespace dtrain {

namespace {

/// Returns a layer, {kind: options}, with all defaults filled in; null if the layer is invalid.
ConfigNode resolved_layer(const ConfigNode& layer) {
  Diagnostics mistakes;
  return registry<Layer>().parse(layer, mistakes).resolved;
}

/// Returns true if a layer, {kind: options} with all defaults, has go_backwards.
bool goes_backwards(const ConfigNode& layer) {
  return layer.entries().front().second.find("go_backwards")->text() == "true";
}

/// Returns the default backward layer of a bidirectional layer: `layer` in the opposite direction. `layer` is
/// {kind: options} with all defaults.
ConfigNode mirrored_layer(const ConfigNode& layer) {
  const auto& [kind, options] = layer.entries().front();
  const ConfigNode opposite = ConfigNode::scalar(goes_backwards(layer) ? "false" : "true");
  return ConfigNode::mapping({ConfigNode::entry(kind.text(), options.with("go_backwards", opposite))});
}

/// Converts the options to Keras's config. If the forward layer has go_backwards and the config has no
/// backward_layer, Keras would set go_backwards in both layers. In this case, the config gets an explicit
/// backward_layer.
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

/// Returns true if `backward` is the default backward layer for `layer`. Both are {kind: options}.
bool is_mirrored(const ConfigNode& layer, const ConfigNode& backward) {
  const ConfigNode a = resolved_layer(layer), b = resolved_layer(backward);
  return a.is_mapping() && b.is_mapping() && mirrored_layer(a).to_yaml() == b.to_yaml();
}

/// Converts Keras's config. Keras 3 always writes the backward layer, even if it is only the default copy of
/// the forward layer.
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

/// Returns the cell of the Keras layer that contains a parameter, such as "forward_layer/cell" for
/// "forward_kernel".
std::string cell_of_parameter(const Json&, const std::string& parameter) {
  return parameter.starts_with("forward_") ? "forward_layer/cell" : "backward_layer/cell";
}

/// Returns the two recurrent layers of a bidirectional layer. Throws UserError if their outputs cannot be
/// merged in `tool`.
std::array<Recurrent, 2> directions_of(const GraphNode& node, const Json& options, const char* tool) {
  if (option_is(options, "merge_mode", "none"))
    throw UserError(fmt::format(
        "bidirectional '{}' cannot be exported to {} yet, because it has two outputs (merge_mode: none)",
        node.name, tool));
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
  // A bidirectional layer reverses the states of its backward layer. If the backward layer goes backwards,
  // its reversed states are in the order of the input.
  if (is_true_at(own, "return_sequences") && !backward.goes_backwards())
    throw UserError(
        fmt::format("bidirectional '{}' cannot be exported to {} yet, because its backward layer has "
                    "`go_backwards: false` and `return_sequences` is true",
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
  if (const std::string mask = layer.mask(); !mask.empty() && axis == 2) {  // the output of masked steps is 0
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
    // the output of masked steps is 0
    merged = layer.add(fmt::format("{} * {}.unsqueeze(-1)", merged, mask));
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
