#include <fmt/format.h>

#include "interop/keras/export/options.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/table.h"
#include "interop/layers/windows.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"
#include "interop/torch/expressions.h"

namespace dtrain {

namespace {

/// Returns the ONNX attributes of a window on an image or volume of this shape.
std::vector<OnnxAttribute> onnx_window(const Window& window, const Padding3& padding, const Shape& image) {
  return {{"kernel_shape", axes_of(window.size, image)},
          {"strides", axes_of(window.strides, image)},
          {"dilations", axes_of(window.dilation, image)},
          {"pads", pads_of(padding, image)}};
}

/// Returns the window that a layer's options describe for its input.
template <class FormatLayer>
Window window_of(const FormatLayer& layer) {
  return convolution_window(layer.options(), layer.input_spec().shape);
}

/// Returns the ONNX attributes of a window on the layer's input, including the padding.
std::vector<OnnxAttribute> onnx_window(const OnnxLayer& layer, const Window& window) {
  const Shape& image = layer.input_spec().shape;
  return onnx_window(window, padding_of(window, image), image);
}

/// Returns the permutation of the axes of a Keras kernel that puts the filters first and the channels second.
std::vector<int64_t> kernel_axes(const Shape& image) {
  if (image.rank() == 4) return {4, 3, 0, 1, 2};
  return {3, 2, 0, 1};
}

void add_onnx_convolution(OnnxLayer& layer, const std::string& op, const std::string& kernel,
                          std::vector<OnnxAttribute> attributes) {
  std::vector<std::string> inputs = {layer.input(0, ExportLayout::channels_first), kernel};
  if (layer.has_parameter("bias")) inputs.push_back(layer.parameter("bias"));
  layer.set_output(layer.add(op, std::move(inputs), std::move(attributes)), ExportLayout::channels_first);
}

void conv_to_onnx(OnnxLayer& layer) {
  const Window window = window_of(layer);
  std::vector<OnnxAttribute> attributes = onnx_window(layer, window);
  if (const int64_t groups = groups_of_convolution(layer.options()); groups > 1)
    attributes.emplace_back("group", groups);
  add_onnx_convolution(layer, "Conv", layer.parameter("kernel", kernel_axes(layer.input_spec().shape)),
                       std::move(attributes));
}

void depthwise_conv2d_to_onnx(OnnxLayer& layer) {
  const Window window = window_of(layer);
  const int64_t channels = layer.input_spec().shape[2], filters = layer.output_spec().shape[2];
  std::vector<OnnxAttribute> attributes = onnx_window(layer, window);
  attributes.emplace_back("group", channels);
  add_onnx_convolution(
      layer, "Conv",
      layer.parameter("depthwise_kernel", {2, 3, 0, 1}, {filters, 1, window.size.height, window.size.width}),
      std::move(attributes));
}

void conv2d_transpose_to_onnx(OnnxLayer& layer) {
  const Window window = window_of(layer);
  const TransposePadding padding =
      transpose_padding(window, layer.input_spec().shape, layer.output_spec().shape);
  std::vector<OnnxAttribute> attributes = onnx_window(window, padding.cut, layer.input_spec().shape);
  attributes.emplace_back("output_padding", axes_of(padding.extra, layer.input_spec().shape));
  add_onnx_convolution(layer, "ConvTranspose", layer.parameter("kernel", {3, 2, 0, 1}),
                       std::move(attributes));
}

/// Returns the arguments of a PyTorch module that come after its channel counts. `further`: additional
/// arguments, such as groups.
std::string torch_arguments(const TorchLayer& layer, const Window& window, const std::string& further) {
  const Shape& image = layer.input_spec().shape;
  return fmt::format("{}, stride={}, dilation={}{}{}", torch_size(axes_of(window.size, image)),
                     torch_size(axes_of(window.strides, image)), torch_size(axes_of(window.dilation, image)),
                     further, layer.has_parameter("bias") ? "" : ", bias=False");
}

void add_torch_convolution(TorchLayer& layer, const Window& window) {
  if (layer.has_parameter("bias")) layer.weight("bias", "bias");
  const std::string x = torch_padded(layer.input(0, ExportLayout::channels_first),
                                     padding_of(window, layer.input_spec().shape), "0");
  layer.set_output(layer.add(fmt::format("{}({})", layer.module(), x)), ExportLayout::channels_first);
}

void conv_to_torch(TorchLayer& layer) {
  const Window window = window_of(layer);
  const Shape& image = layer.input_spec().shape;
  layer.set_module(fmt::format("nn.Conv{}({}, {}, {})", dimensions_of(image), image.back(),
                               layer.output_spec().shape.back(),
                               torch_arguments(layer, window, torch_groups(layer.options()))));
  layer.weight("weight", "kernel", kernel_axes(image));
  add_torch_convolution(layer, window);
}

void depthwise_conv2d_to_torch(TorchLayer& layer) {
  const Window window = window_of(layer);
  const int64_t channels = layer.input_spec().shape[2], filters = layer.output_spec().shape[2];
  layer.set_module(fmt::format("nn.Conv2d({}, {}, {})", channels, filters,
                               torch_arguments(layer, window, fmt::format(", groups={}", channels))));
  layer.weight("weight", "depthwise_kernel", {2, 3, 0, 1},
               {filters, 1, window.size.height, window.size.width});
  add_torch_convolution(layer, window);
}

/// Exports a conv2d_transpose. PyTorch can only crop both sides equally, so the exact cropping is done by
/// slicing the output.
void conv2d_transpose_to_torch(TorchLayer& layer) {
  const Window window = window_of(layer);
  const Shape& output = layer.output_spec().shape;
  const TransposePadding padding = transpose_padding(window, layer.input_spec().shape, output);
  const std::string extra =
      fmt::format(", output_padding={}", torch_size(axes_of(padding.extra, layer.input_spec().shape)));
  layer.set_module(fmt::format("nn.ConvTranspose2d({}, {}, {})", layer.input_spec().shape[2], output[2],
                               torch_arguments(layer, window, extra)));
  layer.weight("weight", "kernel", {3, 2, 0, 1});
  if (layer.has_parameter("bias")) layer.weight("bias", "bias");
  const Padding3& cut = padding.cut;
  const std::string slice =
      cut == Padding3{}
          ? ""
          : fmt::format("[:, :, {}:{}, {}:{}]", cut.top, cut.top + output[0], cut.left, cut.left + output[1]);
  layer.set_output(
      layer.add(fmt::format("{}({}){}", layer.module(), layer.input(0, ExportLayout::channels_first), slice)),
      ExportLayout::channels_first);
}

void separable_conv2d_to_onnx(OnnxLayer& layer) {
  const Window window = window_of(layer);
  const int64_t channels = layer.input_spec().shape[2];
  const int64_t between = channels * layer.options().at("depth_multiplier").as_int();
  std::vector<OnnxAttribute> attributes = onnx_window(layer, window);
  attributes.emplace_back("group", channels);
  const std::string depthwise =
      layer.parameter("depthwise_kernel", {2, 3, 0, 1}, {between, 1, window.size.height, window.size.width});
  std::vector<std::string> inputs = {
      layer.add("Conv", {layer.input(0, ExportLayout::channels_first), depthwise}, std::move(attributes)),
      layer.parameter("pointwise_kernel", {3, 2, 0, 1})};
  if (layer.has_parameter("bias")) inputs.push_back(layer.parameter("bias"));
  layer.set_output(layer.add("Conv", std::move(inputs)), ExportLayout::channels_first);
}

/// Exports a separable_conv2d as two successive convolutions.
void separable_conv2d_to_torch(TorchLayer& layer) {
  const Window window = window_of(layer);
  const Shape& image = layer.input_spec().shape;
  const int64_t channels = image[2], filters = layer.output_spec().shape[2];
  const int64_t between = channels * layer.options().at("depth_multiplier").as_int();
  const bool has_bias = layer.has_parameter("bias");
  layer.set_module(
      fmt::format("nn.Sequential(nn.Conv2d({}, {}, {}, stride={}, dilation={}, groups={}, bias=False), "
                  "nn.Conv2d({}, {}, 1{}))",
                  channels, between, torch_size(axes_of(window.size, image)),
                  torch_size(axes_of(window.strides, image)), torch_size(axes_of(window.dilation, image)),
                  channels, between, filters, has_bias ? "" : ", bias=False"));
  layer.weight("0.weight", "depthwise_kernel", {2, 3, 0, 1},
               {between, 1, window.size.height, window.size.width});
  layer.weight("1.weight", "pointwise_kernel", {3, 2, 0, 1});
  if (has_bias) layer.weight("1.bias", "bias");
  const std::string x = torch_padded(layer.input(0, ExportLayout::channels_first),
                                     padding_of(window, layer.input_spec().shape), "0");
  layer.set_output(layer.add(fmt::format("{}({})", layer.module(), x)), ExportLayout::channels_first);
}

/// Converts Keras's config. Keras 3 also writes the option kernel_initializer of the base class, although the
/// layer does not use it.
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
      .onnx = conv_to_onnx,
      .torch = conv_to_torch,
  });
  table.push_back({
      .kind = "conv3d",
      .to_keras = keras_image_layer("Conv3D"),
      .from_keras = image_options_of_keras("conv3d"),
      .onnx = conv_to_onnx,
      .torch = conv_to_torch,
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
