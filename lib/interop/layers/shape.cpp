#include <fmt/format.h>
#include <fmt/ranges.h>

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

/// Exports zero padding. ONNX's `pads` first lists the padding at the start of every axis, and then the
/// padding at the end of every axis. The axes are in the order of channels first.
void padding_to_onnx(OnnxLayer& layer) {
  const Shape& image = layer.input_spec().shape;
  std::vector<int64_t> ends = pads_of(sides_of(layer.options().at("padding")), image);
  ends.insert(ends.begin() + std::ssize(ends) / 2, {0, 0});
  ends.insert(ends.begin(), {0, 0});
  const std::string pads = layer.integers(ends);
  layer.set_output(layer.add("Pad", {layer.input(0, ExportLayout::channels_first), pads}),
                   ExportLayout::channels_first);
}

/// Returns the range of indices that remains along each axis of an image or volume after cropping.
std::vector<std::pair<int64_t, int64_t>> kept_of(const Json& options, const Shape& image) {
  const std::vector<int64_t> cut = pads_of(sides_of(options.at("cropping")), image);
  std::vector<std::pair<int64_t, int64_t>> kept;
  for (size_t i = 0; i < cut.size() / 2; ++i) kept.emplace_back(cut[i], image[i] - cut[cut.size() / 2 + i]);
  return kept;
}

void cropping_to_onnx(OnnxLayer& layer) {
  std::vector<int64_t> starts, ends, axes;
  for (const auto& [start, end] : kept_of(layer.options(), layer.input_spec().shape)) {
    starts.push_back(start);
    ends.push_back(end);
    axes.push_back(std::ssize(axes) + 2);
  }
  layer.set_output(layer.add("Slice", {layer.input(0, ExportLayout::channels_first), layer.integers(starts),
                                       layer.integers(ends), layer.integers(axes)}),
                   ExportLayout::channels_first);
}

void flatten_to_onnx(OnnxLayer& layer) {
  const std::string x = layer.input(0, ExportLayout::channels_last);
  layer.set_output(
      layer.input_spec().shape.rank() == 1 ? x : layer.add("Flatten", {x}, {{"axis", int64_t{1}}}),
      ExportLayout::channels_last);
}

void reshape_to_onnx(OnnxLayer& layer) {
  std::vector<int64_t> shape = {0};  // 0 stands for the batch size
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
  std::string slice = "[:, :";
  for (const auto& [start, end] : kept_of(layer.options(), layer.input_spec().shape))
    slice += fmt::format(", {}:{}", start, end);
  layer.set_output(layer.add(layer.input(0, ExportLayout::channels_first) + slice + "]"),
                   ExportLayout::channels_first);
}

/// Exports a flatten or reshape layer.
void reshape_to_torch(TorchLayer& layer) {
  const std::string x = layer.input(0, ExportLayout::channels_last);
  layer.set_output(layer.add(fmt::format("{0}.reshape({0}.shape[0], {1})", x,
                                         fmt::join(layer.output_spec().shape.extents(), ", "))),
                   ExportLayout::channels_last);
}

/// Returns the permutation of a batch's axes for the option `dims`. In `dims`, the axes of a sample are
/// numbered from 1.
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

/// Returns true if an upsampling layer interpolates bilinearly. upsampling3d has no option for this.
bool is_bilinear(const Json& options) {
  const Json* interpolation = options.find("interpolation");
  return interpolation && interpolation->as_string() == "bilinear";
}

/// Returns the factor of an upsampling layer along each axis.
template <class FormatLayer>
std::vector<int64_t> times_of(const FormatLayer& layer) {
  const Shape& image = layer.input_spec().shape;
  return axes_of(size_of(layer.options().at("size"), image), image);
}

void upsampling_to_onnx(OnnxLayer& layer) {
  const std::vector<int64_t> times = times_of(layer);
  set_onnx_resized(layer, std::vector<float>(times.begin(), times.end()), is_bilinear(layer.options()));
}

void upsampling_to_torch(TorchLayer& layer) {
  std::string x = layer.input(0, ExportLayout::channels_first);
  const std::vector<int64_t> factors = times_of(layer);
  if (is_bilinear(layer.options())) {
    x = fmt::format("F.interpolate({}, scale_factor={}, mode='bilinear', align_corners=False)", x,
                    torch_size(factors));
  } else {
    int axis = 2;
    for (const int64_t times : factors) x += fmt::format(".repeat_interleave({}, {})", times, axis++);
  }
  layer.set_output(layer.add(x), ExportLayout::channels_first);
}

}  // namespace

void add_shape_formats(std::vector<LayerFormats>& table) {
  const auto add = [&](const char* kind, const char* keras, void (*onnx)(OnnxLayer&),
                       void (*torch)(TorchLayer&)) {
    table.push_back({
        .kind = kind,
        .to_keras = keras_image_layer(keras),
        .from_keras = image_options_of_keras(kind),
        .onnx = onnx,
        .torch = torch,
    });
  };
  add("zero_padding2d", "ZeroPadding2D", padding_to_onnx, padding_to_torch);
  add("zero_padding3d", "ZeroPadding3D", padding_to_onnx, padding_to_torch);
  add("cropping2d", "Cropping2D", cropping_to_onnx, cropping_to_torch);
  add("cropping3d", "Cropping3D", cropping_to_onnx, cropping_to_torch);
  add("upsampling2d", "UpSampling2D", upsampling_to_onnx, upsampling_to_torch);
  add("upsampling3d", "UpSampling3D", upsampling_to_onnx, upsampling_to_torch);
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
