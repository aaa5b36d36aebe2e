#include <fmt/format.h>

#include "interop/keras/export/options.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/operators.h"
#include "interop/layers/table.h"
#include "interop/layers/windows.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"
#include "interop/torch/expressions.h"

namespace dtrain {

namespace {

/// Returns the window of a sequence layer. A sequence is treated as an image of height 1.
Window sequence_window(const Json& options) {
  const auto length = [&](const char* key, int64_t otherwise) {
    const Json* value = options.find(key);
    return value && value->is_int() ? value->as_int() : otherwise;
  };
  const int64_t size = length("kernel_size", length("pool_size", 1));
  return {Size2{1, size}, Size2{1, length("strides", options.find("pool_size") ? size : 1)},
          Size2{1, length("dilation_rate", 1)}, border_of(options)};
}

Padding3 sequence_padding(const Window& window, const TensorSpec& input) {
  return padding_of(window, Shape{1, input.shape[0], input.shape[1]});
}

/// Parses how many positions are padded or cropped before and after a sequence, as Codec<Sides> writes it.
std::pair<int64_t, int64_t> ends_of(const Json& written) {
  return {written.items().at(0).as_int(), written.items().at(1).as_int()};
}

/// Sets the layer's output to the result of one operator that is applied to the input [batch, channels,
/// length].
void set_onnx_sequence(OnnxLayer& layer, const std::string& op, std::vector<std::string> further_inputs,
                       std::vector<OnnxAttribute> attributes = {}) {
  std::vector<std::string> inputs = {layer.input(0, ExportLayout::channels_first)};
  inputs.insert(inputs.end(), further_inputs.begin(), further_inputs.end());
  layer.set_output(layer.add(op, std::move(inputs), std::move(attributes)), ExportLayout::channels_first);
}

std::vector<OnnxAttribute> sequence_attributes(const Window& window, const Padding3& padding) {
  return {{"kernel_shape", std::vector<int64_t>{window.size.width}},
          {"strides", std::vector<int64_t>{window.strides.width}},
          {"pads", std::vector<int64_t>{padding.left, padding.right}}};
}

void conv1d_to_onnx(OnnxLayer& layer) {
  const Window window = sequence_window(layer.options());
  std::vector<OnnxAttribute> attributes =
      sequence_attributes(window, sequence_padding(window, layer.input_spec()));
  attributes.emplace_back("dilations", std::vector<int64_t>{window.dilation.width});
  if (const int64_t groups = groups_of_convolution(layer.options()); groups > 1)
    attributes.emplace_back("group", groups);
  std::vector<std::string> inputs = {layer.parameter("kernel", {2, 1, 0})};
  if (layer.has_parameter("bias")) inputs.push_back(layer.parameter("bias"));
  set_onnx_sequence(layer, "Conv", std::move(inputs), std::move(attributes));
}

/// Returns the padding of a transposed convolution of sequences as ONNX and PyTorch express it.
TransposePadding sequence_transpose_padding(const Window& window, const TensorSpec& input,
                                            const TensorSpec& output) {
  return transpose_padding(window, Shape{1, input.shape[0], input.shape[1]},
                           Shape{1, output.shape[0], output.shape[1]});
}

void conv1d_transpose_to_onnx(OnnxLayer& layer) {
  const Window window = sequence_window(layer.options());
  const TransposePadding padding =
      sequence_transpose_padding(window, layer.input_spec(), layer.output_spec());
  std::vector<OnnxAttribute> attributes = sequence_attributes(window, padding.cut);
  attributes.emplace_back("dilations", std::vector<int64_t>{window.dilation.width});
  attributes.emplace_back("output_padding", std::vector<int64_t>{padding.extra.width});
  std::vector<std::string> inputs = {layer.parameter("kernel", {2, 1, 0})};
  if (layer.has_parameter("bias")) inputs.push_back(layer.parameter("bias"));
  set_onnx_sequence(layer, "ConvTranspose", std::move(inputs), std::move(attributes));
}

std::function<void(OnnxLayer&)> pooling1d_to_onnx(const std::string& op) {
  return [op](OnnxLayer& layer) {
    const Window window = sequence_window(layer.options());
    std::vector<OnnxAttribute> attributes =
        sequence_attributes(window, sequence_padding(window, layer.input_spec()));
    if (op == "AveragePool") attributes.emplace_back("count_include_pad", int64_t{0});
    set_onnx_sequence(layer, op, {}, std::move(attributes));
  };
}

void padding1d_to_onnx(OnnxLayer& layer) {
  const auto [before, after] = ends_of(layer.options().at("padding"));
  set_onnx_sequence(layer, "Pad", {layer.integers({0, 0, before, 0, 0, after})});
}

void cropping1d_to_onnx(OnnxLayer& layer) {
  const auto [before, after] = ends_of(layer.options().at("cropping"));
  const std::string end = layer.integers({layer.input_spec().shape[0] - after});
  set_onnx_sequence(layer, "Slice", {layer.integers({before}), end, layer.integers({2})});
}

void upsampling1d_to_onnx(OnnxLayer& layer) {
  set_onnx_resized(layer, {static_cast<float>(layer.options().at("size").as_int())}, false);
}

/// Returns the input with channels first. If the padding is not 0, the input is padded with `value` at both
/// ends.
std::string torch_padded_sequence(TorchLayer& layer, const Padding3& padding, const char* value) {
  const std::string x = layer.input(0, ExportLayout::channels_first);
  if (padding.left == 0 && padding.right == 0) return x;
  return fmt::format("F.pad({}, ({}, {}), value={})", x, padding.left, padding.right, value);
}

void conv1d_to_torch(TorchLayer& layer) {
  const Window window = sequence_window(layer.options());
  layer.set_module(fmt::format("nn.Conv1d({}, {}, {}, stride={}, dilation={}{}{})",
                               layer.input_spec().shape[1], layer.output_spec().shape[1], window.size.width,
                               window.strides.width, window.dilation.width, torch_groups(layer.options()),
                               layer.has_parameter("bias") ? "" : ", bias=False"));
  layer.weight("weight", "kernel", {2, 1, 0});
  if (layer.has_parameter("bias")) layer.weight("bias", "bias");
  const std::string x = torch_padded_sequence(layer, sequence_padding(window, layer.input_spec()), "0");
  layer.set_output(layer.add(fmt::format("{}({})", layer.module(), x)), ExportLayout::channels_first);
}

/// Exports a conv1d_transpose. PyTorch can only crop both ends equally, so the exact cropping is done by
/// slicing the output.
void conv1d_transpose_to_torch(TorchLayer& layer) {
  const Window window = sequence_window(layer.options());
  const Shape& output = layer.output_spec().shape;
  const TransposePadding padding =
      sequence_transpose_padding(window, layer.input_spec(), layer.output_spec());
  layer.set_module(fmt::format("nn.ConvTranspose1d({}, {}, {}, stride={}, dilation={}, output_padding={}{})",
                               layer.input_spec().shape[1], output[1], window.size.width,
                               window.strides.width, window.dilation.width, padding.extra.width,
                               layer.has_parameter("bias") ? "" : ", bias=False"));
  layer.weight("weight", "kernel", {2, 1, 0});
  if (layer.has_parameter("bias")) layer.weight("bias", "bias");
  const int64_t left = padding.cut.left;
  layer.set_output(
      layer.add(fmt::format("{}({})[:, :, {}:{}]", layer.module(),
                            layer.input(0, ExportLayout::channels_first), left, left + output[0])),
      ExportLayout::channels_first);
}

void max_pooling1d_to_torch(TorchLayer& layer) {
  const Window window = sequence_window(layer.options());
  const std::string x =
      torch_padded_sequence(layer, sequence_padding(window, layer.input_spec()), "float('-inf')");
  layer.set_output(
      layer.add(fmt::format("F.max_pool1d({}, {}, {})", x, window.size.width, window.strides.width)),
      ExportLayout::channels_first);
}

void average_pooling1d_to_torch(TorchLayer& layer) {
  const Window window = sequence_window(layer.options());
  const Padding3 padding = sequence_padding(window, layer.input_spec());
  layer.set_output(layer.add(fmt::format("average_pool({}, {}, {}, ({}, {}))",
                                         layer.input(0, ExportLayout::channels_first), window.size.width,
                                         window.strides.width, padding.left, padding.right)),
                   ExportLayout::channels_first);
}

std::function<void(TorchLayer&)> global_pooling1d_to_torch(const std::string& function) {
  return [function](TorchLayer& layer) {
    const bool keeps = layer.output_spec().shape.rank() > 1;
    layer.set_output(layer.add(fmt::format("{}.{}(2{})", layer.input(0, ExportLayout::channels_first),
                                           function, keeps ? ", keepdim=True" : "")),
                     keeps ? ExportLayout::channels_first : ExportLayout::channels_last);
  };
}

/// Adds the mean over the valid steps. The mean is 0 if all steps are masked.
void average_of_sequence_to_onnx(OnnxLayer& layer) {
  const std::string mask = layer.mask();
  if (mask.empty()) return global_pooling_to_onnx("GlobalAveragePool")(layer);
  const std::string row = layer.add("Reshape", {mask, layer.integers({0, 1, layer.input_spec().shape[0]})});
  const std::string sum = layer.add("MatMul", {row, layer.input(0, ExportLayout::channels_last)});
  const std::string count = layer.add("ReduceSum", {row, layer.integers({-1})}, {{"keepdims", int64_t{1}}});
  std::string mean = layer.add("Div", {sum, layer.add("Max", {count, layer.constant(1)})});
  if (layer.output_spec().shape.rank() == 1) mean = layer.add("Squeeze", {mean, layer.integers({1})});
  layer.set_output(mean, ExportLayout::channels_last);
}

void average_of_sequence_to_torch(TorchLayer& layer) {
  const std::string mask = layer.mask();
  if (mask.empty()) return global_pooling1d_to_torch("mean")(layer);
  const std::string weights = layer.add(mask + ".unsqueeze(-1)");
  const char* const keeps = layer.output_spec().shape.rank() > 1 ? ", keepdim=True" : "";
  layer.set_output(layer.add(fmt::format("({0} * {1}).sum(1{2}) / {1}.sum(1{2}).clamp(min=1)",
                                         layer.input(0, ExportLayout::channels_last), weights, keeps)),
                   ExportLayout::channels_last);
}

void padding1d_to_torch(TorchLayer& layer) {
  const auto [before, after] = ends_of(layer.options().at("padding"));
  layer.set_output(layer.add(torch_padded_sequence(layer, {0, 0, before, after}, "0")),
                   ExportLayout::channels_first);
}

void cropping1d_to_torch(TorchLayer& layer) {
  const auto [before, after] = ends_of(layer.options().at("cropping"));
  layer.set_output(layer.add(fmt::format("{}[:, :, {}:{}]", layer.input(0, ExportLayout::channels_first),
                                         before, layer.input_spec().shape[0] - after)),
                   ExportLayout::channels_first);
}

void upsampling1d_to_torch(TorchLayer& layer) {
  layer.set_output(
      layer.add(fmt::format("{}.repeat_interleave({}, 2)", layer.input(0, ExportLayout::channels_first),
                            layer.options().at("size").as_int())),
      ExportLayout::channels_first);
}

/// Returns a conversion from a Keras sequence layer whose options have the same names as the options of
/// `kind`.
std::function<ConfigNode(KerasLayerReader&)> sequence_from_keras(std::string kind) {
  return [kind = std::move(kind)](KerasLayerReader& reader) {
    const Json* format = reader.find("data_format");
    if (format && format->is_string() && format->as_string() == "channels_first")
      reader.add_problem("has data_format: channels_first");
    const Json *size = reader.find("pool_size"), *strides = reader.find("strides");
    if (size && strides && size->dump() == strides->dump()) reader.skip({"strides"});
    reader.read_groups(kind);
    return reader.options(registry<Layer>().fields(kind));
  };
}

}  // namespace

void add_sequence_formats(std::vector<LayerFormats>& table) {
  const auto add = [&](const char* kind, const char* keras, std::function<void(OnnxLayer&)> onnx,
                       std::function<void(TorchLayer&)> torch) {
    table.push_back({
        .kind = kind,
        .to_keras = keras_image_layer(keras),
        .from_keras = sequence_from_keras(kind),
        .onnx = std::move(onnx),
        .torch = std::move(torch),
    });
  };
  add("conv1d", "Conv1D", conv1d_to_onnx, conv1d_to_torch);
  add("conv1d_transpose", "Conv1DTranspose", conv1d_transpose_to_onnx, conv1d_transpose_to_torch);
  add("max_pooling1d", "MaxPooling1D", pooling1d_to_onnx("MaxPool"), max_pooling1d_to_torch);
  add("average_pooling1d", "AveragePooling1D", pooling1d_to_onnx("AveragePool"), average_pooling1d_to_torch);
  add("global_max_pooling1d", "GlobalMaxPooling1D", global_pooling_to_onnx("GlobalMaxPool"),
      global_pooling1d_to_torch("amax"));
  add("global_average_pooling1d", "GlobalAveragePooling1D", average_of_sequence_to_onnx,
      average_of_sequence_to_torch);
  // The Keras classes of these layers have no data_format.
  const auto without_format = [&](const char* kind, const char* keras, std::function<void(OnnxLayer&)> onnx,
                                  std::function<void(TorchLayer&)> torch) {
    add(kind, keras, std::move(onnx), std::move(torch));
    table.back().to_keras = keras_layer(keras);
  };
  without_format("cropping1d", "Cropping1D", cropping1d_to_onnx, cropping1d_to_torch);
  without_format("upsampling1d", "UpSampling1D", upsampling1d_to_onnx, upsampling1d_to_torch);
  without_format("zero_padding1d", "ZeroPadding1D", padding1d_to_onnx, padding1d_to_torch);
}

}  // namespace dtrain
