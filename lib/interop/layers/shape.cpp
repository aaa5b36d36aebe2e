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

/// Padding and cropping apply to images. ONNX's pads list all four axes, channels first.
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
  std::vector<int64_t> shape = {0};  // 0 keeps the batch size
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

/// Converts both flatten and reshape.
void reshape_to_torch(TorchLayer& layer) {
  const std::string x = layer.input(0, ExportLayout::channels_last);
  layer.set_output(layer.add(fmt::format("{0}.reshape({0}.shape[0], {1})", x,
                                         fmt::join(layer.output_spec().shape.extents(), ", "))),
                   ExportLayout::channels_last);
}

/// Returns the permutation of a batch's axes for `dims`, whose axes are counted from 1.
std::vector<int64_t> axes_of_permute(const Json& options) {
  std::vector<int64_t> axes = {0};
  for (const Json& dim : options.at("dims").items()) axes.push_back(dim.as_int());
  return axes;
}

void permute_to_onnx(OnnxLayer& layer) {
  layer.set_output(layer.add("Transpose", {layer.input(0, ExportLayout::channels_last)},
                             {{"perm", axes_of_permute(layer.options())}}),
                   ExportLayout::channels_last);
}

void permute_to_torch(TorchLayer& layer) {
  layer.set_output(layer.add(fmt::format("{}.permute({})", layer.input(0, ExportLayout::channels_last),
                                         fmt::join(axes_of_permute(layer.options()), ", "))),
                   ExportLayout::channels_last);
}

void repeat_vector_to_onnx(OnnxLayer& layer) {
  const Shape& shape = layer.output_spec().shape;
  const std::string x = layer.input(0, ExportLayout::channels_last);
  const std::string row = layer.add("Reshape", {x, layer.integers({0, 1, shape[1]})});
  layer.set_output(layer.add("Tile", {row, layer.integers({1, shape[0], 1})}), ExportLayout::channels_last);
}

void repeat_vector_to_torch(TorchLayer& layer) {
  layer.set_output(
      layer.add(fmt::format("{}.unsqueeze(1).repeat(1, {}, 1)", layer.input(0, ExportLayout::channels_last),
                            layer.output_spec().shape[0])),
      ExportLayout::channels_last);
}

void upsampling_to_onnx(OnnxLayer& layer) {
  const Size2 size = size_of(layer.options().at("size"));
  const std::string scales =
      layer.float32({1, 1, static_cast<float>(size.height), static_cast<float>(size.width)});
  layer.set_output(layer.add("Resize", {layer.input(0, ExportLayout::channels_first), "", scales},
                             {{"mode", std::string("nearest")},
                              {"coordinate_transformation_mode", std::string("asymmetric")},
                              {"nearest_mode", std::string("floor")}}),
                   ExportLayout::channels_first);
}

void upsampling_to_torch(TorchLayer& layer) {
  const Size2 size = size_of(layer.options().at("size"));
  layer.set_output(
      layer.add(fmt::format("{}.repeat_interleave({}, 2).repeat_interleave({}, 3)",
                            layer.input(0, ExportLayout::channels_first), size.height, size.width)),
      ExportLayout::channels_first);
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
      .kind = "upsampling2d",
      .to_keras = keras_image_layer("UpSampling2D"),
      .from_keras = image_options_of_keras("upsampling2d"),
      .onnx = upsampling_to_onnx,
      .torch = upsampling_to_torch,
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
  table.push_back({
      .kind = "permute",
      .to_keras = keras_layer("Permute"),
      .from_keras = options_of_keras("permute"),
      .onnx = permute_to_onnx,
      .torch = permute_to_torch,
  });
  table.push_back({
      .kind = "repeat_vector",
      .to_keras = keras_layer("RepeatVector"),
      .from_keras = options_of_keras("repeat_vector"),
      .onnx = repeat_vector_to_onnx,
      .torch = repeat_vector_to_torch,
  });
}

}  // namespace dtrain
