// Conversions of multi_head_attention to and from other formats.
#include "interop/layers/attention.h"

#include <array>

#include <fmt/format.h>

#include "interop/keras/export/options.h"
#include "interop/keras/files/attention_model.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/table.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"

namespace dtrain {

bool option_is_set(const Json& options, const char* key) {
  const Json* const found = options.find(key);
  return found && !found->is_null() && !(found->is_bool() && !found->as_bool());
}

Heads heads_of(const GraphNode& node) {
  Heads result{};
  for (const ParameterSpec& parameter : node.parameters) {
    if (parameter.name == "query/kernel")
      result.heads = parameter.shape[1], result.key_dim = parameter.shape[2];
    if (parameter.name == "value/kernel")
      result.kv_heads = parameter.shape[1], result.value_dim = parameter.shape[2];
  }
  return result;
}

namespace {

bool is_grouped(const Json& options) {
  const Json* const heads = options.find("num_key_value_heads");
  return heads && heads->is_int() && heads->as_int() != options.at("num_heads").as_int();
}

/// Returns true if no Keras layer can compute the attention, so that a Keras model is exported instead of a
/// layer. This is the case for rotary positions, and for grouped heads whose values differ in size from their
/// keys.
bool is_model_in_keras(const Json& options) {
  if (option_is_set(options, "rotary")) return true;
  const Json &value_dim = options.at("value_dim"), &key_dim = options.at("key_dim");
  return is_grouped(options) && !value_dim.is_null() &&
         !(key_dim.is_int() && key_dim.as_int() == value_dim.as_int());
}

/// Converts the options to the config of MultiHeadAttention, or of GroupQueryAttention if several query heads
/// share a key and value head.
KerasLayerConfig attention_to_keras(const ConfigNode& options) {
  const Json all = keras_options(options);
  if (is_model_in_keras(all)) return {kKerasModel, Json::object()};
  const bool grouped = is_grouped(all);
  KerasLayerConfig keras{grouped ? "GroupQueryAttention" : "MultiHeadAttention", Json::object()};
  for (const auto& [key, value] : all.entries()) {
    if (key == "causal" || key == "rotary") continue;
    if (key == (grouped ? "value_dim" : "num_key_value_heads")) continue;
    const bool renamed = grouped && (key == "num_heads" || key == "key_dim");
    keras.config.set(!renamed ? key : key == "num_heads" ? "num_query_heads" : "head_dim", value);
  }
  return keras;
}

/// Sets `config` to the Keras model that computes the attention.
void complete_model(const Graph& graph, const GraphNode& node, Json& config) {
  const Heads heads = heads_of(node);
  const Json options = keras_options(options_of(node.layer));
  KerasAttention attention{.inputs = {},
                           .output = node.outputs[0].shape,
                           .heads = heads.heads,
                           .kv_heads = heads.kv_heads,
                           .key_dim = heads.key_dim,
                           .value_dim = heads.value_dim,
                           .rotary_base = std::nullopt,
                           .causal = option_is_set(options, "causal"),
                           .use_bias = options.at("use_bias").as_bool(),
                           .dropout = options.at("dropout").as_double()};
  for (const ValueRef& input : node.inputs) attention.inputs.push_back(graph.spec(input).shape);
  if (option_is_set(options, "rotary")) attention.rotary_base = options.at("rotary").at("base").as_double();
  config = keras_attention_model(attention, config, options);
}

/// Adds the sizes of the heads to the config. They are optional in dtrain, but Keras requires them.
void complete_attention(const Graph& graph, const GraphNode& node, Json& config) {
  if (keras_config_of(node.layer).class_name == kKerasModel) return complete_model(graph, node, config);
  const Heads heads = heads_of(node);
  if (config.find("head_dim")) {
    config.set("head_dim", heads.key_dim);
  } else {
    config.set("key_dim", heads.key_dim).set("value_dim", heads.value_dim);
  }
}

Json attention_call(const ConfigNode& options, const std::vector<Json>& inputs) {
  Json arguments = Json::array();
  for (const Json& input : inputs) arguments.push(input);
  // here, the attention is a Keras model, whose call takes all inputs as one argument
  if (is_model_in_keras(to_json(options)))
    return Json::object()
        .set("args", Json::array().push(inputs.size() == 1 ? inputs.front() : arguments))
        .set("kwargs", Json::object());
  if (inputs.size() == 1) arguments.push(inputs.front());  // the value; Keras uses it as the key, too
  Json keywords = Json::object();
  if (option_is_set(to_json(options), "causal")) keywords.set("use_causal_mask", true);
  return Json::object().set("args", std::move(arguments)).set("kwargs", std::move(keywords));
}

/// Returns the part of the Keras layer that contains a parameter: "query/kernel" is in query_dense.
std::string attention_part(const Json& keras_config, const std::string& parameter) {
  const std::string name = parameter.substr(0, parameter.find('/'));
  if (keras_config.entries().empty())  // here, the attention is a Keras model, see is_model_in_keras()
    for (const KerasLayerPart& part : kKerasAttentionParts)
      if (part.prefix == name + "/") return std::string(part.group);
  return fmt::format("{}{}_dense", keras_config.find("head_dim") ? "_" : "",
                     name == "attention_output" ? "output" : name);
}

ConfigNode attention_from_keras(KerasLayerReader& reader) {
  reader.skip({"seed", "flash_attention", "query_shape", "key_shape", "value_shape"});
  reader.expect("attention_axes", 1);
  reader.expect_input_width("output_shape");
  std::vector<std::string> names = registry<Layer>().fields("multi_head_attention");
  names.insert(names.end(), {"head_dim", "num_query_heads"});
  ConfigNode options = reader.options(names);
  const std::pair<const char*, const char*> renamed[] = {{"head_dim", "key_dim"},
                                                         {"num_query_heads", "num_heads"}};
  for (const auto& [from, to] : renamed) {
    const ConfigNode* const value = options.find(from);
    if (!value) continue;
    options = options.with(to, *value);
    const std::string_view keys[] = {from};
    options = options.without(keys);
  }
  return options;
}

/// Adds the rotation of x, [batch, heads, positions, dim], if the layer has rotary positions.
std::string torch_rotated(TorchLayer& layer, const std::string& x, int64_t positions, int64_t dim) {
  const Json* const rotary = layer.options().find("rotary");
  if (!rotary || rotary->is_null()) return x;
  const std::string angles =
      layer.add(fmt::format("torch.outer(torch.arange({0}, dtype=torch.float64, device={1}.device), {2} ** "
                            "(-torch.arange(0, {3}, 2, "
                            "dtype=torch.float64, device={1}.device) / {3}))",
                            positions, x, rotary->at("base").as_double(), dim));
  const std::string cosines = layer.add(fmt::format("{}.cos().to({}.dtype)", angles, x)),
                    sines = layer.add(fmt::format("{}.sin().to({}.dtype)", angles, x));
  const std::string first = layer.add(fmt::format("{}[..., :{}]", x, dim / 2)),
                    second = layer.add(fmt::format("{}[..., {}:]", x, dim / 2));
  return layer.add(fmt::format("torch.cat(({0} * {2} - {1} * {3}, {1} * {2} + {0} * {3}), -1)", first, second,
                               cosines, sines));
}

/// Sets the PyTorch modules that project the queries, the keys, the values and the outputs. Their weights
/// have the shape [outputs, inputs].
void set_torch_products(TorchLayer& layer, const std::array<size_t, 3>& inputs, const Heads& heads) {
  const std::string bias = layer.has_parameter("query/bias") ? "" : ", bias=False";
  const int64_t features = layer.output_spec().shape[1], width = heads.heads * heads.value_dim;
  const std::array<int64_t, 3> widths = {heads.heads * heads.key_dim, heads.kv_heads * heads.key_dim,
                                         heads.kv_heads * heads.value_dim};
  const std::array<const char*, 3> names = {"query", "key", "value"};
  std::string modules;
  for (size_t i = 0; i < names.size(); ++i)
    modules += fmt::format("\"{}\": nn.Linear({}, {}{}), ", names[i], layer.input_spec(inputs[i]).shape[1],
                           widths[i], bias);
  layer.set_module(fmt::format("nn.ModuleDict({{{}\"attention_output\": nn.Linear({}, {}{})}})", modules,
                               width, features, bias));
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = names[i];
    layer.weight(name + ".weight", name + "/kernel", {1, 2, 0},
                 {widths[i], layer.input_spec(inputs[i]).shape[1]});
    if (bias.empty()) layer.weight(name + ".bias", name + "/bias", {}, {widths[i]});
  }
  layer.weight("attention_output.weight", "attention_output/kernel", {2, 0, 1}, {features, width});
  if (bias.empty()) layer.weight("attention_output.bias", "attention_output/bias");
}

void attention_to_torch(TorchLayer& layer) {
  const Heads heads = heads_of(layer.node());
  const std::array<size_t, 3> inputs = {0, layer.inputs() - 1, layer.inputs() == 1 ? size_t{0} : size_t{1}};
  set_torch_products(layer, inputs, heads);
  const auto projected = [&](const char* name, size_t input, int64_t count, int64_t dim) {
    return layer.add(fmt::format("{}[\"{}\"]({}).unflatten(-1, ({}, {})).transpose(1, 2)", layer.module(),
                                 name, layer.input(input, ExportLayout::channels_last), count, dim));
  };
  const std::string query = torch_rotated(layer, projected("query", 0, heads.heads, heads.key_dim),
                                          layer.input_spec(0).shape[0], heads.key_dim);
  std::string key = torch_rotated(layer, projected("key", inputs[1], heads.kv_heads, heads.key_dim),
                                  layer.input_spec(inputs[1]).shape[0], heads.key_dim);
  std::string value = projected("value", inputs[2], heads.kv_heads, heads.value_dim);
  if (heads.group() > 1) {
    key = layer.add(fmt::format("{}.repeat_interleave({}, 1)", key, heads.group()));
    value = layer.add(fmt::format("{}.repeat_interleave({}, 1)", value, heads.group()));
  }
  const bool causal = option_is_set(layer.options(), "causal");
  const std::string mask = key_mask(layer);
  std::string attended;
  if (mask.empty()) {
    attended = fmt::format("F.scaled_dot_product_attention({}, {}, {}{})", query, key, value,
                           causal ? ", is_causal=True" : "");
  } else {
    std::string visible = layer.add(mask + "[:, None, None, :]");
    if (causal)
      visible =
          layer.add(fmt::format("{0} & torch.ones({1}, {2}, dtype=torch.bool, device={0}.device).tril()",
                                visible, layer.input_spec(0).shape[0], layer.input_spec(inputs[1]).shape[0]));
    // The output of a query whose keys are all masked is 0.
    attended =
        layer.add(fmt::format("torch.where({3}.any(-1, keepdim=True), F.scaled_dot_product_attention({0}, "
                              "{1}, {2}, attn_mask={3}), 0.0)",
                              query, key, value, visible));
  }
  const std::string y = layer.add(attended + ".transpose(1, 2).flatten(2)");
  layer.set_output(layer.add(fmt::format("{}[\"attention_output\"]({})", layer.module(), y)),
                   ExportLayout::channels_last);
}

}  // namespace

void add_attention_formats(std::vector<LayerFormats>& table) {
  table.push_back({
      .kind = "multi_head_attention",
      .to_keras = attention_to_keras,
      .from_keras = attention_from_keras,
      .onnx = attention_to_onnx,
      .torch = attention_to_torch,
      .keras_classes = {"GroupQueryAttention", "GroupedQueryAttention", kKerasModelOfAttention},
      .keras_part = attention_part,
      .complete_keras = complete_attention,
      .keras_call = attention_call,
  });
}

}  // namespace dtrain
