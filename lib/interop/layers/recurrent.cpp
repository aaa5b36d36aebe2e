#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "interop/keras/export/options.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/table.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"

namespace dtrain {

namespace {

/// Converts the options to Keras's config. A function that Keras lacks gets a name that Keras does not know,
/// so that it rejects the model instead of computing something else.
std::function<KerasLayerConfig(const ConfigNode&)> recurrent_to_keras(std::string class_name) {
  return [class_name = std::move(class_name)](const ConfigNode& options) {
    Json config = keras_options(options);
    for (const char* name : {"activation", "recurrent_activation"}) {
      const ConfigNode* const activation = options.find(name);
      if (!activation) continue;
      const KerasActivation keras = keras_activation(*activation);
      config.set(name, keras.layer.empty() ? keras.function
                                           : fmt::format("{}{}", keras.function, keras.layer_config.dump()));
    }
    return KerasLayerConfig{class_name, std::move(config)};
  };
}

/// Converts Keras's config. Files of Keras before 2.1 have a gru without reset_after: before the product.
std::function<ConfigNode(KerasLayerReader&)> recurrent_from_keras(std::string kind) {
  return [kind = std::move(kind)](KerasLayerReader& reader) {
    reader.skip({"implementation", "unroll", "seed", "input_dim", "input_length"});
    reader.expect("recurrent_dropout", 0);
    reader.expect("stateful", false);
    ConfigNode options = reader.options(registry<Layer>().fields(kind));
    for (const char* name : {"activation", "recurrent_activation"}) {
      const Json* const written = reader.find(name);
      // Keras's null and "linear" mean no function; without the option, dtrain would use its default.
      if (written && !options.find(name) && reader.activation(*written).is_null())
        options = options.with(name, ConfigNode::scalar("linear"));
    }
    if (kind == "gru" && !reader.find("reset_after"))
      options = options.with("reset_after", ConfigNode::scalar("false"));
    return options;
  };
}

bool option_is(const Json& options, const char* key, const char* value) {
  const Json* const found = options.find(key);
  return !found || (found->is_string() && found->as_string() == value);
}

bool is_set(const Json& options, const char* key) {
  const Json* const found = options.find(key);
  return found && found->is_bool() && found->as_bool();
}

/// Throws UserError if the layer cannot be exported to `tool`. `is_usual` says whether `tool` has its
/// activations.
void check_exported(const GraphNode& node, const Json& options, const char* tool, bool is_usual) {
  const auto refuse = [&](const std::string& what) {
    throw UserError(
        fmt::format("{} '{}' cannot be exported to {} yet: {}", node.kind, node.name, tool, what));
  };
  if (is_set(options, "return_state")) refuse("it has return_state");
  if (node.inputs.size() > 1) refuse("it has an initial state");
  if (!is_usual) refuse("it has other activations than Keras's defaults");
}

bool has_usual_activations(const Json& options) {
  return option_is(options, "activation", "tanh") && option_is(options, "recurrent_activation", "sigmoid");
}

/// Returns the transposed array of [rows, gates * units], with the gates in another order.
std::vector<float> gates_first(std::span<const float> values, int64_t units,
                               const std::vector<int64_t>& order) {
  const auto columns = static_cast<int64_t>(order.size()) * units,
             rows = static_cast<int64_t>(values.size()) / columns;
  std::vector<float> result;
  result.reserve(values.size());
  for (const int64_t gate : order)
    for (int64_t j = 0; j < units; ++j)
      for (int64_t r = 0; r < rows; ++r)
        result.push_back(values[static_cast<size_t>(r * columns + gate * units + j)]);
  return result;
}

/// ONNX's operator of a recurrent layer, and the order of its gates in terms of Keras's.
struct OnnxRecurrence {
  const char* op;
  std::vector<int64_t> gates;
};

void recurrent_to_onnx(OnnxLayer& layer, const OnnxRecurrence& form) {
  const Json& options = layer.options();
  check_exported(layer.node(), options, "ONNX", has_usual_activations(options));
  const int64_t units = options.at("units").as_int(), steps = layer.input_spec().shape[0],
                inputs = layer.input_spec().shape[1];
  const auto columns = static_cast<int64_t>(form.gates.size()) * units;
  std::vector<std::string> operands = {
      layer.add("Transpose", {layer.input(0, ExportLayout::channels_last)},
                {{"perm", std::vector<int64_t>{1, 0, 2}}}),
      layer.array("W", {1, columns, inputs}, gates_first(layer.values("kernel"), units, form.gates)),
      layer.array("R", {1, columns, units},
                  gates_first(layer.values("recurrent_kernel"), units, form.gates))};
  if (layer.has_parameter("bias")) {
    // The biases of both products, one after the other.
    const std::span<const float> values = layer.values("bias");
    const auto n = static_cast<size_t>(columns);
    std::vector<float> bias = gates_first(values.first(n), units, form.gates);
    if (values.size() > n) {
      const std::vector<float> recurrent = gates_first(values.subspan(n), units, form.gates);
      bias.insert(bias.end(), recurrent.begin(), recurrent.end());
    }
    bias.resize(2 * n, 0.0f);
    operands.push_back(layer.array("B", {1, 2 * columns}, std::move(bias)));
  }
  const bool backwards = is_set(options, "go_backwards");
  std::vector<OnnxAttribute> attributes = {{"hidden_size", units},
                                           {"direction", std::string(backwards ? "reverse" : "forward")}};
  if (is_set(options, "reset_after")) attributes.emplace_back("linear_before_reset", int64_t{1});
  // [steps, 1, batch, units], in the order of the inputs
  std::string y = layer.add(form.op, operands, attributes);
  if (!is_set(options, "return_sequences")) {
    const int64_t last = backwards ? 0 : steps - 1;
    y = layer.add("Slice", {y, layer.integers({last}), layer.integers({last + 1}), layer.integers({0})});
    layer.set_output(layer.add("Squeeze", {y, layer.integers({0, 1})}), ExportLayout::channels_last);
    return;
  }
  y = layer.add("Squeeze", {y, layer.integers({1})});
  if (backwards) {
    std::vector<int64_t> reversed;
    for (int64_t t = steps; t-- > 0;) reversed.push_back(t);
    y = layer.add("Gather", {y, layer.integers(reversed)}, {{"axis", int64_t{0}}});
  }
  layer.set_output(layer.add("Transpose", {y}, {{"perm", std::vector<int64_t>{1, 0, 2}}}),
                   ExportLayout::channels_last);
}

/// Returns the input of a module, in the order of processing.
std::string torch_sequence(TorchLayer& layer) {
  const std::string x = layer.input(0, ExportLayout::channels_last);
  return is_set(layer.options(), "go_backwards") ? x + ".flip(1)" : x;
}

/// Sets the output from an expression for the states after all steps.
void set_torch_states(TorchLayer& layer, const std::string& states) {
  const char* const part = is_set(layer.options(), "return_sequences") ? "" : "[:, -1]";
  layer.set_output(layer.add(states + part), ExportLayout::channels_last);
}

/// nn.LSTM has the same order of gates as Keras, nn.RNN has one gate. Both have a second bias, which is zero.
void module_to_torch(TorchLayer& layer, const std::string& module, const std::string& arguments) {
  const int64_t units = layer.options().at("units").as_int();
  const bool has_bias = layer.has_parameter("bias");
  layer.set_module(fmt::format("{}({}, {}{}, batch_first=True{})", module, layer.input_spec().shape[1], units,
                               has_bias ? "" : ", bias=False", arguments));
  layer.weight("weight_ih_l0", "kernel", {1, 0});
  layer.weight("weight_hh_l0", "recurrent_kernel", {1, 0});
  if (has_bias) {
    layer.weight("bias_ih_l0", "bias");
    const int64_t columns = (layer.node().kind == "lstm" ? 4 : 1) * units;
    layer.weight_or("bias_hh_l0", "", {columns}, 0);
  }
  set_torch_states(layer, fmt::format("{}({})[0]", layer.module(), torch_sequence(layer)));
}

void lstm_to_torch(TorchLayer& layer) {
  check_exported(layer.node(), layer.options(), "PyTorch", has_usual_activations(layer.options()));
  module_to_torch(layer, "nn.LSTM", "");
}

void simple_rnn_to_torch(TorchLayer& layer) {
  const bool relu = layer.options().find("activation") && option_is(layer.options(), "activation", "relu");
  check_exported(layer.node(), layer.options(), "PyTorch", relu || has_usual_activations(layer.options()));
  module_to_torch(layer, "nn.RNN", relu ? ", nonlinearity=\"relu\"" : "");
}

/// nn.GRU has the reset gate first. The weights keep Keras's order, and forward() converts them.
void gru_to_torch(TorchLayer& layer) {
  const Json& options = layer.options();
  check_exported(layer.node(), options, "PyTorch", has_usual_activations(options));
  if (!is_set(options, "reset_after"))
    throw UserError(fmt::format("gru '{}' cannot be exported to PyTorch: nn.GRU has no reset_after: false",
                                layer.node().name));
  const int64_t units = options.at("units").as_int(), inputs = layer.input_spec().shape[1];
  const bool has_bias = layer.has_parameter("bias");
  std::string parameters;
  const auto add = [&](const char* name, int64_t rows) {
    parameters += fmt::format("{}\"{}\": nn.Parameter(torch.zeros({}, {}))", parameters.empty() ? "" : ", ",
                              name, rows, 3 * units);
  };
  add("kernel", inputs);
  add("recurrent_kernel", units);
  if (has_bias) add("bias", 2);
  layer.set_module(fmt::format("nn.ParameterDict({{{}}})", parameters));
  layer.weight("kernel", "kernel");
  layer.weight("recurrent_kernel", "recurrent_kernel");
  if (has_bias) layer.weight("bias", "bias");
  const auto converted = [&](const char* name, const char* end) {
    return layer.add(fmt::format("{}[\"{}\"].unflatten(1, (3, {}))[:, [1, 0, 2]].flatten(1){}",
                                 layer.module(), name, units, end));
  };
  const std::string x = layer.add(torch_sequence(layer)), kernel = converted("kernel", ".t().contiguous()"),
                    recurrent = converted("recurrent_kernel", ".t().contiguous()"),
                    bias = has_bias ? converted("bias", "") : "";
  const std::string weights = has_bias ? fmt::format("{}, {}, {}[0], {}[1]", kernel, recurrent, bias, bias)
                                       : fmt::format("{}, {}", kernel, recurrent);
  set_torch_states(layer,
                   fmt::format("torch.gru({0}, {0}.new_zeros(1, {0}.shape[0], {1}), [{2}], {3}, 1, 0.0, "
                               "False, False, True)[0]",
                               x, units, weights, has_bias ? "True" : "False"));
}

}  // namespace

void add_recurrent_formats(std::vector<LayerFormats>& table) {
  const auto add = [&](const std::string& kind, const char* keras, OnnxRecurrence onnx,
                       std::function<void(TorchLayer&)> torch) {
    table.push_back({
        .kind = kind,
        .to_keras = recurrent_to_keras(keras),
        .from_keras = recurrent_from_keras(kind),
        .onnx = [onnx = std::move(onnx)](OnnxLayer& layer) { recurrent_to_onnx(layer, onnx); },
        .torch = std::move(torch),
        .keras_part = [](const Json&, const std::string&) { return std::string("cell"); },
        .keras_further_inputs = "initial_state",
    });
  };
  add("lstm", "LSTM", {"LSTM", {0, 3, 1, 2}}, lstm_to_torch);
  add("gru", "GRU", {"GRU", {0, 1, 2}}, gru_to_torch);
  add("simple_rnn", "SimpleRNN", {"RNN", {0}}, simple_rnn_to_torch);
}

}  // namespace dtrain
