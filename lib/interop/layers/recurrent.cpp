#include "interop/layers/recurrent.h"

#include <array>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "interop/keras/export/options.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/masked_steps.h"
#include "interop/layers/table.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"

namespace dtrain {

bool option_is(const Json& options, const char* key, const char* value) {
  const Json* const found = options.find(key);
  return !found || (found->is_string() && found->as_string() == value);
}

namespace {

/// Converts the options to Keras's config. If Keras lacks an activation function, the config contains a name
/// that Keras does not know. Keras then rejects the model instead of computing a different function.
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

/// Converts Keras's config. Keras before 2.1 wrote no `reset_after`. Layers without this option behave as
/// with `reset_after: false`.
std::function<ConfigNode(KerasLayerReader&)> recurrent_from_keras(std::string kind) {
  return [kind = std::move(kind)](KerasLayerReader& reader) {
    reader.skip({"implementation", "unroll", "seed", "input_dim", "input_length"});
    reader.expect("stateful", false);
    ConfigNode options = reader.options(registry<Layer>().fields(kind));
    for (const char* name : {"activation", "recurrent_activation"}) {
      const Json* const written = reader.find(name);
      // In Keras, both null and "linear" stand for the linear activation. It is set explicitly, because
      // dtrain has a different default.
      if (written && !options.find(name) && reader.activation(*written).is_null())
        options = options.with(name, ConfigNode::scalar("linear"));
    }
    if (kind == "gru" && !reader.find("reset_after"))
      options = options.with("reset_after", ConfigNode::scalar("false"));
    return options;
  };
}

/// Throws UserError if a recurrent layer cannot be exported to `tool`. `is_usual`: whether `tool` supports
/// the activations of the layer.
void check_exported(const GraphNode& node, const Json& options, const char* tool, bool is_usual) {
  const auto refuse = [&](const std::string& what) {
    throw UserError(
        fmt::format("{} '{}' cannot be exported to {} yet: {}", node.kind, node.name, tool, what));
  };
  if (is_true_at(options, "return_state")) refuse("it has return_state");
  if (node.inputs.size() > 1) refuse("it has an initial state");
  if (!is_usual) refuse("its activations are not Keras's defaults");
}

bool has_usual_activations(const Json& options) {
  return option_is(options, "activation", "tanh") && option_is(options, "recurrent_activation", "sigmoid");
}

/// Transposes an array [rows, gates * units] and sorts its gates in the given order.
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

/// An ONNX operator for a recurrent layer, and the order of its gates: for each ONNX gate, the index of the
/// gate in Keras.
struct OnnxRecurrence {
  const char* op;
  std::vector<int64_t> gates;
};

const OnnxRecurrence& onnx_recurrence_of(const std::string& kind) {
  static const std::map<std::string, OnnxRecurrence> forms = {
      {"lstm", {"LSTM", {0, 3, 1, 2}}}, {"gru", {"GRU", {0, 1, 2}}}, {"simple_rnn", {"RNN", {0}}}};
  return forms.at(kind);
}

}  // namespace

std::string add_onnx_recurrence(OnnxLayer& layer, const Recurrent& recurrent) {
  const OnnxRecurrence& form = onnx_recurrence_of(recurrent.kind);
  const Json& options = recurrent.options;
  const std::string& prefix = recurrent.prefix;
  check_exported(layer.node(), options, "ONNX", has_usual_activations(options));
  const int64_t units = options.at("units").as_int(), steps = layer.input_spec().shape[0],
                inputs = layer.input_spec().shape[1];
  const auto columns = static_cast<int64_t>(form.gates.size()) * units;
  const std::string mask = layer.mask();
  const bool is_masked = !mask.empty(), backwards = recurrent.goes_backwards();
  const OnnxSteps chosen = is_masked ? add_onnx_steps(layer, mask, steps, backwards) : OnnxSteps();
  std::string x = layer.input(0, ExportLayout::channels_last);
  if (is_masked) x = layer.add("MatMul", {chosen.valid, x});
  std::vector<std::string> operands = {
      layer.add("Transpose", {x}, {{"perm", std::vector<int64_t>{1, 0, 2}}}),
      layer.array(prefix + "W", {1, columns, inputs},
                  gates_first(layer.values(prefix + "kernel"), units, form.gates)),
      layer.array(prefix + "R", {1, columns, units},
                  gates_first(layer.values(prefix + "recurrent_kernel"), units, form.gates))};
  if (layer.has_parameter(prefix + "bias")) {
    // ONNX expects the biases of the input product, followed by the biases of the recurrent product.
    const std::span<const float> values = layer.values(prefix + "bias");
    const auto n = static_cast<size_t>(columns);
    std::vector<float> bias = gates_first(values.first(n), units, form.gates);
    if (values.size() > n) {
      const std::vector<float> second = gates_first(values.subspan(n), units, form.gates);
      bias.insert(bias.end(), second.begin(), second.end());
    }
    bias.resize(2 * n, 0.0f);
    operands.push_back(layer.array(prefix + "B", {1, 2 * columns}, std::move(bias)));
  }
  // the valid steps of a masked input are already in the order of processing
  const bool in_reverse = backwards && !is_masked;
  std::vector<OnnxAttribute> attributes = {{"hidden_size", units},
                                           {"direction", std::string(in_reverse ? "reverse" : "forward")}};
  if (is_true_at(options, "reset_after")) attributes.emplace_back("linear_before_reset", int64_t{1});
  // The states have the shape [steps, 1, batch, units] and are in the order of the operator's input.
  std::string y = layer.add(form.op, operands, attributes);
  const bool sequences = is_true_at(options, "return_sequences");
  const int64_t last = backwards ? 0 : steps - 1;
  if (is_masked) {
    y = layer.add("Transpose", {layer.add("Squeeze", {y, layer.integers({1})})},
                  {{"perm", std::vector<int64_t>{1, 0, 2}}});
    if (sequences) return layer.add("MatMul", {chosen.latest, y});
    const std::string row = layer.add(
        "Slice", {chosen.latest, layer.integers({last}), layer.integers({last + 1}), layer.integers({1})});
    return layer.add("Squeeze", {layer.add("MatMul", {row, y}), layer.integers({1})});
  }
  if (!sequences) {
    y = layer.add("Slice", {y, layer.integers({last}), layer.integers({last + 1}), layer.integers({0})});
    return layer.add("Squeeze", {y, layer.integers({0, 1})});
  }
  y = layer.add("Squeeze", {y, layer.integers({1})});
  if (backwards && !recurrent.in_input_order) {
    std::vector<int64_t> reversed;
    for (int64_t t = steps; t-- > 0;) reversed.push_back(t);
    y = layer.add("Gather", {y, layer.integers(reversed)}, {{"axis", int64_t{0}}});
  }
  return layer.add("Transpose", {y}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
}

namespace {

void recurrent_to_onnx(OnnxLayer& layer) {
  layer.set_output(add_onnx_recurrence(layer, {layer.node().kind, layer.options()}),
                   ExportLayout::channels_last);
}

/// Returns the mask with its steps in the order of processing; "" if the layer has no mask.
std::string torch_mask(TorchLayer& layer, const Recurrent& recurrent) {
  const std::string mask = layer.mask();
  return mask.empty() || !recurrent.goes_backwards() ? mask : mask + ".flip(1)";
}

/// Returns the input of a PyTorch module with its steps in the order of processing. Masked steps are moved to
/// the end, because they do not change the state.
std::string torch_sequence(TorchLayer& layer, const Recurrent& recurrent) {
  std::string x = layer.input(0, ExportLayout::channels_last);
  if (recurrent.goes_backwards()) x += ".flip(1)";
  const std::string mask = torch_mask(layer, recurrent);
  if (mask.empty()) return x;
  const std::string order = layer.add(fmt::format("torch.sort((~{}).byte(), dim=1, stable=True)[1]", mask));
  return fmt::format("torch.take_along_dim({}, {}.unsqueeze(-1), 1)", x, order);
}

/// Adds the output of a recurrent layer. `states`: an expression for the states after each step of
/// torch_sequence(). Returns the variable of the output.
std::string add_torch_states(TorchLayer& layer, const Recurrent& recurrent, std::string states) {
  if (const std::string mask = torch_mask(layer, recurrent); !mask.empty()) {
    // The state of a masked step is the state of the last valid step before it, or 0 if there is no such
    // step.
    const std::string count = layer.add(fmt::format("{}.cumsum(1).unsqueeze(-1)", mask));
    states = fmt::format("(torch.take_along_dim({0}, ({1} - 1).clamp(min=0), 1) * ({1} > 0))", states, count);
  }
  const bool sequences = is_true_at(recurrent.options, "return_sequences");
  const bool flips = sequences && recurrent.goes_backwards() && recurrent.in_input_order;
  return layer.add(states + (flips ? ".flip(1)" : sequences ? "" : "[:, -1]"));
}

/// Returns the Python expression that refers to a recurrent layer's module.
std::string module_of(const TorchLayer& layer, const Recurrent& recurrent) {
  return recurrent.part.empty() ? layer.module() : fmt::format("{}[\"{}\"]", layer.module(), recurrent.part);
}

std::string weight_name(const Recurrent& recurrent, const char* name) {
  return recurrent.part.empty() ? name : fmt::format("{}.{}", recurrent.part, name);
}

/// Returns the code for a layer that is computed by nn.LSTM or nn.RNN. The gates of nn.LSTM have the same
/// order as in Keras, and nn.RNN has only one gate. Both modules have a second bias, which is set to zero.
TorchRecurrence module_in_torch(const TorchLayer& layer, const Recurrent& recurrent,
                                const std::string& module, const std::string& arguments) {
  const int64_t units = recurrent.options.at("units").as_int();
  const bool has_bias = layer.has_parameter(recurrent.prefix + "bias");
  const auto add = [recurrent, units, has_bias](TorchLayer& to) {
    const std::string& prefix = recurrent.prefix;
    to.weight(weight_name(recurrent, "weight_ih_l0"), prefix + "kernel", {1, 0});
    to.weight(weight_name(recurrent, "weight_hh_l0"), prefix + "recurrent_kernel", {1, 0});
    if (has_bias) {
      to.weight(weight_name(recurrent, "bias_ih_l0"), prefix + "bias");
      const int64_t columns = (recurrent.kind == "lstm" ? 4 : 1) * units;
      to.weight_or(weight_name(recurrent, "bias_hh_l0"), "", {columns}, 0);
    }
    return add_torch_states(
        to, recurrent, fmt::format("{}({})[0]", module_of(to, recurrent), torch_sequence(to, recurrent)));
  };
  return {fmt::format("{}({}, {}{}, batch_first=True{})", module, layer.input_spec().shape[1], units,
                      has_bias ? "" : ", bias=False", arguments),
          add};
}

/// Adds the code for a gru. Its module is an nn.ParameterDict whose weights have Keras's order of gates.
/// forward() converts them to the order of nn.GRU, in which the reset gate comes first.
std::string add_torch_gru(TorchLayer& layer, const Recurrent& recurrent) {
  const int64_t units = recurrent.options.at("units").as_int();
  const bool has_bias = layer.has_parameter(recurrent.prefix + "bias");
  for (const char* name : {"kernel", "recurrent_kernel", "bias"})
    if (has_bias || std::string_view(name) != "bias")
      layer.weight(weight_name(recurrent, name), recurrent.prefix + name);
  const auto converted = [&](const char* name, const char* end) {
    return layer.add(fmt::format("{}[\"{}\"].unflatten(1, (3, {}))[:, [1, 0, 2]].flatten(1){}",
                                 module_of(layer, recurrent), name, units, end));
  };
  const std::string x = layer.add(torch_sequence(layer, recurrent)),
                    kernel = converted("kernel", ".t().contiguous()"),
                    other = converted("recurrent_kernel", ".t().contiguous()"),
                    bias = has_bias ? converted("bias", "") : "";
  const std::string weights = has_bias ? fmt::format("{}, {}, {}[0], {}[1]", kernel, other, bias, bias)
                                       : fmt::format("{}, {}", kernel, other);
  return add_torch_states(
      layer, recurrent,
      fmt::format(
          "torch.gru({0}, {0}.new_zeros(1, {0}.shape[0], {1}), [{2}], {3}, 1, 0.0, False, False, True)[0]", x,
          units, weights, has_bias ? "True" : "False"));
}

TorchRecurrence gru_in_torch(const TorchLayer& layer, const Recurrent& recurrent) {
  const Json& options = recurrent.options;
  if (!is_true_at(options, "reset_after"))
    throw UserError(fmt::format(
        "{} '{}' cannot be exported to PyTorch, because nn.GRU does not support `reset_after: false`",
        layer.node().kind, layer.node().name));
  const int64_t units = options.at("units").as_int(), inputs = layer.input_spec().shape[1];
  const bool has_bias = layer.has_parameter(recurrent.prefix + "bias");
  std::string parameters;
  const auto add_parameter = [&](const char* name, int64_t rows) {
    parameters += fmt::format("{}\"{}\": nn.Parameter(torch.zeros({}, {}))", parameters.empty() ? "" : ", ",
                              name, rows, 3 * units);
  };
  add_parameter("kernel", inputs);
  add_parameter("recurrent_kernel", units);
  if (has_bias) add_parameter("bias", 2);
  return {fmt::format("nn.ParameterDict({{{}}})", parameters),
          [recurrent](TorchLayer& to) { return add_torch_gru(to, recurrent); }};
}

}  // namespace

TorchRecurrence recurrence_in_torch(const TorchLayer& layer, const Recurrent& recurrent) {
  const Json& options = recurrent.options;
  const bool relu = recurrent.kind == "simple_rnn" && options.find("activation") &&
                    option_is(options, "activation", "relu");
  check_exported(layer.node(), options, "PyTorch", relu || has_usual_activations(options));
  if (recurrent.kind == "gru") return gru_in_torch(layer, recurrent);
  if (recurrent.kind == "lstm") return module_in_torch(layer, recurrent, "nn.LSTM", "");
  return module_in_torch(layer, recurrent, "nn.RNN", relu ? ", nonlinearity=\"relu\"" : "");
}

namespace {

void recurrent_to_torch(TorchLayer& layer) {
  const TorchRecurrence made = recurrence_in_torch(layer, {layer.node().kind, layer.options()});
  layer.set_module(made.constructor);
  layer.set_output(made.add(layer), ExportLayout::channels_last);
}

}  // namespace

void add_recurrent_formats(std::vector<LayerFormats>& table) {
  const auto add = [&](const std::string& kind, const char* keras) {
    table.push_back({
        .kind = kind,
        .to_keras = recurrent_to_keras(keras),
        .from_keras = recurrent_from_keras(kind),
        .onnx = recurrent_to_onnx,
        .torch = recurrent_to_torch,
        .keras_part = [](const Json&, const std::string&) { return std::string("cell"); },
        .keras_further_inputs = "initial_state",
    });
  };
  add("lstm", "LSTM");
  add("gru", "GRU");
  add("simple_rnn", "SimpleRNN");
}

}  // namespace dtrain
