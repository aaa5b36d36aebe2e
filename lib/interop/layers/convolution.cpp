#include "interop/keras/layer_reader.h"
#include "interop/keras/options.h"
#include "interop/layers/table.h"
#include "interop/layers/windows.h"
#include "interop/onnx/builder.h"

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
  std::vector<std::string> inputs = {layer.input(0, OnnxLayout::channels_first), kernel};
  if (layer.has_parameter("bias")) inputs.push_back(layer.parameter("bias"));
  layer.set_output(layer.add(op, std::move(inputs), std::move(attributes)), OnnxLayout::channels_first);
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

}  // namespace

void add_convolution_formats(std::vector<LayerFormats>& table) {
  table.push_back({
      .kind = "conv2d",
      .to_keras = keras_image_layer("Conv2D"),
      .from_keras = image_options_of_keras("conv2d"),
      .onnx = conv2d_to_onnx,
  });
  table.push_back({
      .kind = "depthwise_conv2d",
      .to_keras = keras_image_layer("DepthwiseConv2D"),
      .from_keras = image_options_of_keras("depthwise_conv2d"),
      .onnx = depthwise_conv2d_to_onnx,
  });
  table.push_back({
      .kind = "conv2d_transpose",
      .to_keras = keras_image_layer("Conv2DTranspose"),
      .from_keras = image_options_of_keras("conv2d_transpose"),
      .onnx = conv2d_transpose_to_onnx,
  });
}

}  // namespace dtrain
