#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "interop/keras/export/options.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/table.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"

namespace dtrain {

namespace {

KerasLayerConfig to_keras(const ConfigNode& options) {
  const KerasActivation activation = keras_activation(*options.find("activation"));
  if (activation.layer.empty()) return {"Activation", keras_options(options)};
  return {activation.layer, activation.layer_config};
}

/// Adds Keras's relu with its options: `maximum` for x above the maximum, negative_slope * (x - threshold)
/// for x below the threshold, and x otherwise.
std::string clipped_relu_to_onnx(OnnxLayer& layer, const std::string& x, const ActivationSpec& spec) {
  const bool is_bounded = std::isfinite(spec.maximum);
  if (spec.alpha == 0 && spec.threshold == 0)
    return layer.add("Clip",
                     is_bounded ? std::vector<std::string>{x, layer.constant(0), layer.constant(spec.maximum)}
                                : std::vector<std::string>{x, layer.constant(0)});
  const std::string threshold = layer.constant(spec.threshold);
  const std::string above = is_bounded ? layer.add("Min", {x, layer.constant(spec.maximum)}) : x;
  const std::string below =
      spec.alpha == 0 ? layer.constant(0)
                      : layer.add("Mul", {layer.add("Sub", {x, threshold}), layer.constant(spec.alpha)});
  return layer.add("Where", {layer.add("LessOrEqual", {x, threshold}), below, above});
}

/// Adds gelu: x times the cumulative distribution function of the normal distribution, (1 + erf(x / sqrt(2)))
/// / 2. With `approximate`, this function is approximated with tanh.
std::string gelu_to_onnx(OnnxLayer& layer, const std::string& x, bool approximate) {
  std::string inner;
  if (approximate) {
    const std::string square = layer.add("Mul", {x, x});
    const std::string factor =
        layer.add("Add", {layer.add("Mul", {square, layer.constant(0.044715f)}), layer.constant(1)});
    const std::string scaled = layer.add("Mul", {x, layer.constant(0.7978845608f)});  // sqrt(2 / pi)
    inner = layer.add("Tanh", {layer.add("Mul", {scaled, factor})});
  } else {
    inner = layer.add("Erf", {layer.add("Mul", {x, layer.constant(0.7071067812f)})});
  }
  const std::string half = layer.add("Mul", {x, layer.constant(0.5f)});
  return layer.add("Mul", {half, layer.add("Add", {inner, layer.constant(1)})});
}

std::string elementwise_to_onnx(OnnxLayer& layer, const std::string& x, const ActivationSpec& spec) {
  const auto hard_sigmoid = [&](float slope) {
    return layer.add("HardSigmoid", {x}, {{"alpha", slope}, {"beta", 0.5f}});
  };
  switch (spec.kind) {
    case Activation::linear:
      return x;
    case Activation::relu:
      return layer.add("Relu", {x});
    case Activation::leaky_relu:
      return layer.add("LeakyRelu", {x}, {{"alpha", spec.alpha}});
    case Activation::gelu:
      return gelu_to_onnx(layer, x, spec.approximate);
    case Activation::silu:
      return layer.add("Mul", {x, layer.add("Sigmoid", {x})});
    case Activation::tanh:
      return layer.add("Tanh", {x});
    case Activation::sigmoid:
      return layer.add("Sigmoid", {x});
    case Activation::elu:
      return layer.add("Elu", {x}, {{"alpha", spec.alpha}});
    case Activation::clipped_relu:
      return clipped_relu_to_onnx(layer, x, spec);
    case Activation::softplus:
      return layer.add("Softplus", {x});
    case Activation::softsign:
      return layer.add("Softsign", {x});
    case Activation::hard_sigmoid:
      return hard_sigmoid(spec.alpha);
    case Activation::hard_silu:
      return layer.add("Mul", {x, hard_sigmoid(1.0f / 6)});
    case Activation::selu:
      return layer.add("Selu", {x});
    case Activation::exponential:
      return layer.add("Exp", {x});
    case Activation::mish:
      return layer.add("Mul", {x, layer.add("Tanh", {layer.add("Softplus", {x})})});
  }
  throw std::logic_error("this activation has no ONNX operator");
}

void softmax_to_onnx(OnnxLayer& layer) {
  const std::string x = layer.input(0, ExportLayout::channels_last);
  layer.set_output(layer.add("Softmax", {x}, {{"axis", int64_t{-1}}}), ExportLayout::channels_last);
}

void activation_to_onnx(OnnxLayer& layer) {
  if (layer.node().layer->is_softmax()) return softmax_to_onnx(layer);
  const ExportLayout layout = layer.layout();
  layer.set_output(elementwise_to_onnx(layer, layer.input(0, layout), *layer.node().layer->elementwise()),
                   layout);
}

ConfigNode option(const char* key, double value) {
  return ConfigNode::mapping({ConfigNode::entry(key, config_of_json(Json(value)))});
}

ConfigNode function(const char* name, const char* key, double value) {
  return ConfigNode::mapping({ConfigNode::entry(name, option(key, value))});
}

ConfigNode relu_of(KerasLayerReader& reader) {
  std::vector<ConfigNode::Entry> options;
  if (reader.find("max_value") && reader.number("max_value", 0) <= 0)
    reader.add_problem(fmt::format("has max_value: {:g}, but a relu must have a max_value above 0",
                                   reader.number("max_value", 0)));
  for (const char* key : {"max_value", "negative_slope", "threshold"})
    if (reader.find(key) && reader.number(key, 0) != 0)
      options.push_back(ConfigNode::entry(key, config_of_json(Json(reader.number(key, 0)))));
  if (options.empty()) return ConfigNode::scalar("relu");
  return ConfigNode::mapping({ConfigNode::entry("relu", ConfigNode::mapping(std::move(options)))});
}

ConfigNode function_of(KerasLayerReader& reader) {
  const std::string& name = reader.class_name();
  if (name == "ReLU") return relu_of(reader);
  // Keras 2 names the slope `alpha`; its default is 0.3.
  if (name == "LeakyReLU")
    return function(
        "leaky_relu", "negative_slope",
        reader.find("negative_slope") ? reader.number("negative_slope", 0.3) : reader.number("alpha", 0.3));
  if (name == "ELU") return function("elu", "alpha", reader.number("alpha", 1));
  if (name == "ThresholdedReLU") return function("relu", "threshold", reader.number("theta", 1));
  const Json* written = reader.find("activation");
  ConfigNode activation = written ? reader.activation(*written) : ConfigNode();
  return activation.is_null() ? ConfigNode::scalar("linear") : activation;
}

ConfigNode from_keras(KerasLayerReader& reader) {
  reader.skip({"activation", "alpha", "negative_slope", "max_value", "threshold", "theta"});
  const ConfigNode activation = function_of(reader);
  reader.options({});
  return ConfigNode::mapping({ConfigNode::entry("activation", activation)});
}

ConfigNode softmax_from_keras(KerasLayerReader& reader) {
  reader.expect_last_axis("axis");
  return reader.options({});
}

std::string clipped_relu_to_torch(const std::string& x, const ActivationSpec& spec) {
  const std::string above =
      std::isfinite(spec.maximum) ? fmt::format("{}.clamp(max={})", x, spec.maximum) : x;
  return fmt::format("torch.where({0} <= {1}, ({0} - {1}) * {2}, {3})", x, spec.threshold, spec.alpha, above);
}

std::string elementwise_to_torch(const std::string& x, const ActivationSpec& spec) {
  switch (spec.kind) {
    case Activation::linear:
      return x;
    case Activation::relu:
      return fmt::format("F.relu({})", x);
    case Activation::leaky_relu:
      return fmt::format("F.leaky_relu({}, {})", x, spec.alpha);
    case Activation::gelu:
      return fmt::format("F.gelu({}{})", x, spec.approximate ? ", approximate='tanh'" : "");
    case Activation::silu:
      return fmt::format("F.silu({})", x);
    case Activation::tanh:
      return fmt::format("torch.tanh({})", x);
    case Activation::sigmoid:
      return fmt::format("torch.sigmoid({})", x);
    case Activation::elu:
      return fmt::format("F.elu({}, {})", x, spec.alpha);
    case Activation::clipped_relu:
      return clipped_relu_to_torch(x, spec);
    case Activation::softplus:
      return fmt::format("F.softplus({})", x);
    case Activation::softsign:
      return fmt::format("F.softsign({})", x);
    case Activation::hard_sigmoid:
      return fmt::format("({} * {} + 0.5).clamp(0, 1)", x, spec.alpha);
    case Activation::hard_silu:
      return fmt::format("F.hardswish({})", x);
    case Activation::selu:
      return fmt::format("F.selu({})", x);
    case Activation::exponential:
      return fmt::format("torch.exp({})", x);
    case Activation::mish:
      return fmt::format("F.mish({})", x);
  }
  throw std::logic_error("PyTorch has no function for this activation");
}

void softmax_to_torch(TorchLayer& layer) {
  const std::string x = layer.input(0, ExportLayout::channels_last);
  layer.set_output(layer.add(fmt::format("torch.softmax({}, -1)", x)), ExportLayout::channels_last);
}

void activation_to_torch(TorchLayer& layer) {
  if (layer.node().layer->is_softmax()) return softmax_to_torch(layer);
  const ExportLayout layout = layer.layout();
  layer.set_output(
      layer.add(elementwise_to_torch(layer.input(0, layout), *layer.node().layer->elementwise())), layout);
}

}  // namespace

void add_activation_formats(std::vector<LayerFormats>& table) {
  table.push_back({
      .kind = "activation",
      .to_keras = to_keras,
      .from_keras = from_keras,
      .onnx = activation_to_onnx,
      .torch = activation_to_torch,
      .keras_classes = {"ReLU", "LeakyReLU", "ELU", "ThresholdedReLU"},
  });
  table.push_back({
      .kind = "softmax",
      .to_keras = keras_layer("Softmax"),
      .from_keras = softmax_from_keras,
      .onnx = softmax_to_onnx,
      .torch = softmax_to_torch,
  });
}

}  // namespace dtrain
