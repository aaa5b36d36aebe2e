#include <fmt/format.h>
#include <fmt/ranges.h>

#include "interop/keras/layer_reader.h"
#include "interop/keras/options.h"
#include "interop/layers/table.h"
#include "interop/layers/windows.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"
#include "interop/torch/expressions.h"

namespace dtrain {

namespace {

/// Both layers are of images; `sides` are those of all four axes, channels first.
void padding_to_onnx(OnnxLayer& layer) {
  const Padding2 sides = sides_of(layer.options().at("padding"));
  const std::string pads = layer.integers({0, 0, sides.top, sides.left, 0, 0, sides.bottom, sides.right});
  layer.set_output(layer.add("Pad", {layer.input(0, ExportLayout::channels_first), pads}),
                   ExportLayout::channels_first);
}

void cropping_to_onnx(OnnxLayer& layer) {
  const Padding2 sides = sides_of(layer.options().at("cropping"));
  const Shape& image = layer.input_spec().shape;
  const std::string starts = layer.integers({sides.top, sides.left});
  const std::string ends = layer.integers({image[0] - sides.bottom, image[1] - sides.right});
  layer.set_output(layer.add("Slice", {layer.input(0, ExportLayout::channels_first), starts, ends,
                                       layer.integers({2, 3})}),
                   ExportLayout::channels_first);
}

void flatten_to_onnx(OnnxLayer& layer) {
  const std::string x = layer.input(0, ExportLayout::channels_last);
  layer.set_output(
      layer.input_spec().shape.rank() == 1 ? x : layer.add("Flatten", {x}, {{"axis", int64_t{1}}}),
      ExportLayout::channels_last);
}

void reshape_to_onnx(OnnxLayer& layer) {
  std::vector<int64_t> shape = {0};  // the batch stays
  shape.insert(shape.end(), layer.output_spec().shape.begin(), layer.output_spec().shape.end());
  layer.set_output(layer.add("Reshape", {layer.input(0, ExportLayout::channels_last), layer.integers(shape)}),
                   ExportLayout::channels_last);
}

void padding_to_torch(TorchLayer& layer) {
  const std::string x = torch_padded(layer.input(0, ExportLayout::channels_first),
                                     sides_of(layer.options().at("padding")), "0");
  layer.set_output(layer.add(x), ExportLayout::channels_first);
}

void cropping_to_torch(TorchLayer& layer) {
  const Padding2 sides = sides_of(layer.options().at("cropping"));
  const Shape& image = layer.input_spec().shape;
  layer.set_output(
      layer.add(fmt::format("{}[:, :, {}:{}, {}:{}]", layer.input(0, ExportLayout::channels_first), sides.top,
                            image[0] - sides.bottom, sides.left, image[1] - sides.right)),
      ExportLayout::channels_first);
}

/// Both flatten and reshape.
void reshape_to_torch(TorchLayer& layer) {
  const std::string x = layer.input(0, ExportLayout::channels_last);
  layer.set_output(layer.add(fmt::format("{0}.reshape({0}.shape[0], {1})", x,
                                         fmt::join(layer.output_spec().shape.extents(), ", "))),
                   ExportLayout::channels_last);
}

}  // namespace

void add_shape_formats(std::vector<LayerFormats>& table) {
  table.push_back({
      .kind = "zero_padding2d",
      .to_keras = keras_image_layer("ZeroPadding2D"),
      .from_keras = image_options_of_keras("zero_padding2d"),
      .onnx = padding_to_onnx,
      .torch = padding_to_torch,
  });
  table.push_back({
      .kind = "cropping2d",
      .to_keras = keras_image_layer("Cropping2D"),
      .from_keras = image_options_of_keras("cropping2d"),
      .onnx = cropping_to_onnx,
      .torch = cropping_to_torch,
  });
  table.push_back({
      .kind = "flatten",
      .to_keras = keras_image_layer("Flatten"),
      .from_keras = image_options_of_keras("flatten"),
      .onnx = flatten_to_onnx,
      .torch = reshape_to_torch,
  });
  table.push_back({
      .kind = "reshape",
      .to_keras = keras_layer("Reshape"),
      .from_keras = options_of_keras("reshape"),
      .onnx = reshape_to_onnx,
      .torch = reshape_to_torch,
  });
}

}  // namespace dtrain
