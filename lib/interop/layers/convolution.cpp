#include <fmt/format.h>

#include "interop/keras/layer_reader.h"
#include "interop/keras/options.h"
#include "interop/layers/table.h"
#include "interop/layers/windows.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"
#include "interop/torch/expressions.h"

namespace dtrain {

namespace {

std::vector<int64_t> pair_of(const Size2& size) {
  return {size.height, size.width};
}

/// The beginnings of all axes, then their ends.
std::vector<int64_t> onnx_pads(const Padding2& padding) {
  return {padding.top, padding.left, padding.bottom, padding.right};
}

std::vector<OnnxAttribute> onnx_window(const Window& window, const Padding2& padding) {
  return {{"kernel_shape", pair_of(window.size)},
          {"strides", pair_of(window.strides)},
          {"dilations", pair_of(window.dilation)},
          {"pads", onnx_pads(padding)}};
}

void add_onnx_convolution(OnnxLayer& layer, const std::string& op, const std::string& kernel,
                          std::vector<OnnxAttribute> attributes) {
  std::vector<std::string> inputs = {layer.input(0, ExportLayout::channels_first), kernel};
  if (layer.has_parameter("bias")) inputs.push_back(layer.parameter("bias"));
  layer.set_output(layer.add(op, std::move(inputs), std::move(attributes)), ExportLayout::channels_first);
}

void conv2d_to_onnx(OnnxLayer& layer) {
  const Window window = convolution_window(layer.options());
  add_onnx_convolution(layer, "Conv", layer.parameter("kernel", {3, 2, 0, 1}),
                       onnx_window(window, padding_of(window, layer.input_spec().shape)));
}

void depthwise_conv2d_to_onnx(OnnxLayer& layer) {
  const Window window = convolution_window(layer.options());
  const int64_t channels = layer.input_spec().shape[2], filters = layer.output_spec().shape[2];
  std::vector<OnnxAttribute> attributes = onnx_window(window, padding_of(window, layer.input_spec().shape));
  attributes.emplace_back("group", channels);
  add_onnx_convolution(
      layer, "Conv",
      layer.parameter("depthwise_kernel", {2, 3, 0, 1}, {filters, 1, window.size.height, window.size.width}),
      std::move(attributes));
}

void conv2d_transpose_to_onnx(OnnxLayer& layer) {
  const Window window = convolution_window(layer.options());
  const TransposePadding padding =
      transpose_padding(window, layer.input_spec().shape, layer.output_spec().shape);
  std::vector<OnnxAttribute> attributes = onnx_window(window, padding.cut);
  attributes.emplace_back("output_padding", pair_of(padding.extra));
  add_onnx_convolution(layer, "ConvTranspose", layer.parameter("kernel", {3, 2, 0, 1}),
                       std::move(attributes));
}

/// The module's arguments behind its channels; `further`: groups and the like.
std::string torch_arguments(const TorchLayer& layer, const Window& window, const std::string& further) {
  return fmt::format("{}, stride={}, dilation={}{}{}", torch_size(window.size), torch_size(window.strides),
                     torch_size(window.dilation), further, layer.has_parameter("bias") ? "" : ", bias=False");
}

void add_torch_convolution(TorchLayer& layer, const Window& window) {
  if (layer.has_parameter("bias")) layer.weight("bias", "bias");
  const std::string x = torch_padded(layer.input(0, ExportLayout::channels_first),
                                     padding_of(window, layer.input_spec().shape), "0");
  layer.set_output(layer.add(fmt::format("{}({})", layer.module(), x)), ExportLayout::channels_first);
}

void conv2d_to_torch(TorchLayer& layer) {
  const Window window = convolution_window(layer.options());
  layer.set_module(fmt::format("nn.Conv2d({}, {}, {})", layer.input_spec().shape[2],
                               layer.output_spec().shape[2], torch_arguments(layer, window, "")));
  layer.weight("weight", "kernel", {3, 2, 0, 1});
  add_torch_convolution(layer, window);
}

void depthwise_conv2d_to_torch(TorchLayer& layer) {
  const Window window = convolution_window(layer.options());
  const int64_t channels = layer.input_spec().shape[2], filters = layer.output_spec().shape[2];
  layer.set_module(fmt::format("nn.Conv2d({}, {}, {})", channels, filters,
                               torch_arguments(layer, window, fmt::format(", groups={}", channels))));
  layer.weight("weight", "depthwise_kernel", {2, 3, 0, 1},
               {filters, 1, window.size.height, window.size.width});
  add_torch_convolution(layer, window);
}

/// PyTorch cuts the same off both sides; a slice cuts what is asked for.
void conv2d_transpose_to_torch(TorchLayer& layer) {
  const Window window = convolution_window(layer.options());
  const Shape& output = layer.output_spec().shape;
  const TransposePadding padding = transpose_padding(window, layer.input_spec().shape, output);
  const std::string extra = fmt::format(", output_padding={}", torch_size(padding.extra));
  layer.set_module(fmt::format("nn.ConvTranspose2d({}, {}, {})", layer.input_spec().shape[2], output[2],
                               torch_arguments(layer, window, extra)));
  layer.weight("weight", "kernel", {3, 2, 0, 1});
  if (layer.has_parameter("bias")) layer.weight("bias", "bias");
  const Padding2& cut = padding.cut;
  const std::string slice =
      cut == Padding2{}
          ? ""
          : fmt::format("[:, :, {}:{}, {}:{}]", cut.top, cut.top + output[0], cut.left, cut.left + output[1]);
  layer.set_output(
      layer.add(fmt::format("{}({}){}", layer.module(), layer.input(0, ExportLayout::channels_first), slice)),
      ExportLayout::channels_first);
}

void separable_conv2d_to_onnx(OnnxLayer& layer) {
  const Window window = convolution_window(layer.options());
  const int64_t channels = layer.input_spec().shape[2];
  const int64_t between = channels * layer.options().at("depth_multiplier").as_int();
  std::vector<OnnxAttribute> attributes = onnx_window(window, padding_of(window, layer.input_spec().shape));
  attributes.emplace_back("group", channels);
  const std::string depthwise =
      layer.parameter("depthwise_kernel", {2, 3, 0, 1}, {between, 1, window.size.height, window.size.width});
  std::vector<std::string> inputs = {
      layer.add("Conv", {layer.input(0, ExportLayout::channels_first), depthwise}, std::move(attributes)),
      layer.parameter("pointwise_kernel", {3, 2, 0, 1})};
  if (layer.has_parameter("bias")) inputs.push_back(layer.parameter("bias"));
  layer.set_output(layer.add("Conv", std::move(inputs)), ExportLayout::channels_first);
}

/// Two convolutions, one after the other.
void separable_conv2d_to_torch(TorchLayer& layer) {
  const Window window = convolution_window(layer.options());
  const int64_t channels = layer.input_spec().shape[2], filters = layer.output_spec().shape[2];
  const int64_t between = channels * layer.options().at("depth_multiplier").as_int();
  const bool has_bias = layer.has_parameter("bias");
  layer.set_module(
      fmt::format("nn.Sequential(nn.Conv2d({}, {}, {}, stride={}, dilation={}, groups={}, bias=False), "
                  "nn.Conv2d({}, {}, 1{}))",
                  channels, between, torch_size(window.size), torch_size(window.strides),
                  torch_size(window.dilation), channels, between, filters, has_bias ? "" : ", bias=False"));
  layer.weight("0.weight", "depthwise_kernel", {2, 3, 0, 1},
               {between, 1, window.size.height, window.size.width});
  layer.weight("1.weight", "pointwise_kernel", {3, 2, 0, 1});
  if (has_bias) layer.weight("1.bias", "bias");
  const std::string x = torch_padded(layer.input(0, ExportLayout::channels_first),
                                     padding_of(window, layer.input_spec().shape), "0");
  layer.set_output(layer.add(fmt::format("{}({})", layer.module(), x)), ExportLayout::channels_first);
}

/// Keras 3 writes the kernel_initializer of the base class, which the layer does not use.
ConfigNode separable_conv2d_from_keras(KerasLayerReader& reader) {
  reader.skip({"kernel_initializer"});
  return image_options_of_keras("separable_conv2d")(reader);
}

}  // namespace

void add_convolution_formats(std::vector<LayerFormats>& table) {
  table.push_back({
      .kind = "conv2d",
      .to_keras = keras_image_layer("Conv2D"),
      .from_keras = image_options_of_keras("conv2d"),
      .onnx = conv2d_to_onnx,
      .torch = conv2d_to_torch,
  });
  table.push_back({
      .kind = "depthwise_conv2d",
      .to_keras = keras_image_layer("DepthwiseConv2D"),
      .from_keras = image_options_of_keras("depthwise_conv2d"),
      .onnx = depthwise_conv2d_to_onnx,
      .torch = depthwise_conv2d_to_torch,
  });
  table.push_back({
      .kind = "separable_conv2d",
      .to_keras = keras_image_layer("SeparableConv2D"),
      .from_keras = separable_conv2d_from_keras,
      .onnx = separable_conv2d_to_onnx,
      .torch = separable_conv2d_to_torch,
  });
  table.push_back({
      .kind = "conv2d_transpose",
      .to_keras = keras_image_layer("Conv2DTranspose"),
      .from_keras = image_options_of_keras("conv2d_transpose"),
      .onnx = conv2d_transpose_to_onnx,
      .torch = conv2d_transpose_to_torch,
  });
}

}  // namespace dtrain
