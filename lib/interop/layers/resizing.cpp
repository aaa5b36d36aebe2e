#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "interop/keras/export/options.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/operators.h"
#include "interop/layers/table.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"
#include "ops/math/resize.h"

namespace dtrain {

namespace {

ConfigNode resizing_from_keras(KerasLayerReader& reader) {
  reader.skip({"fill_mode", "fill_value"});  // only used with pad_to_aspect_ratio
  if (const Json* const written = reader.find("interpolation"); written && written->is_string())
    if (const std::string& name = written->as_string(); name != "bilinear" && name != "nearest")
      reader.add_problem(fmt::format("has interpolation: {}", name));
  return reader.options(registry<Layer>().fields("resizing"));
}

/// Returns the smallest scale for which ONNX computes the new extent `out_extent`. ONNX computes it as
/// floor(extent * scale). ONNX Runtime rounds the product to float32, but the shape inference of the Python
/// package onnx uses the exact product, so the scale must be right for both.
float onnx_scale(int64_t extent, int64_t out_extent) {
  const auto from = static_cast<double>(extent), to = static_cast<double>(out_extent);
  float scale = static_cast<float>(out_extent) / static_cast<float>(extent);
  while (from * static_cast<double>(scale) < to)
    scale = std::nextafter(scale, std::numeric_limits<float>::infinity());
  return scale;
}

/// Exports a resizing layer. With nearest interpolation, gathers the pixels by their indices, because Resize
/// would compute the indices from rounded scales.
void resizing_to_onnx(OnnxLayer& layer) {
  const Shape &from = layer.input_spec().shape, &to = layer.output_spec().shape;
  if (layer.options().at("interpolation").as_string() == "bilinear")
    return set_onnx_resized(layer, {onnx_scale(from[0], to[0]), onnx_scale(from[1], to[1])}, true);
  std::string x = layer.input(0, ExportLayout::channels_last);
  for (size_t axis = 0; axis < 2; ++axis) {
    const math::ResizedAxis resized = math::ResizedAxis::of(from[axis], to[axis], true);
    std::vector<int64_t> pixels;
    for (int32_t at = 0; at < resized.out_extent; ++at) pixels.push_back(resized.between(at).first);
    x = layer.add("Gather", {x, layer.integers(pixels)}, {{"axis", static_cast<int64_t>(axis) + 1}});
  }
  layer.set_output(x, ExportLayout::channels_last);
}

void resizing_to_torch(TorchLayer& layer) {
  const Shape& to = layer.output_spec().shape;
  const bool is_bilinear = layer.options().at("interpolation").as_string() == "bilinear";
  layer.set_output(
      layer.add(fmt::format("F.interpolate({}, size=({}, {}), mode={})",
                            layer.input(0, ExportLayout::channels_first), to[0], to[1],
                            is_bilinear ? "'bilinear', align_corners=False" : "'nearest-exact'")),
      ExportLayout::channels_first);
}

}  // namespace

void add_resizing_formats(std::vector<LayerFormats>& table) {
  table.push_back({
      .kind = "resizing",
      .to_keras = keras_layer("Resizing"),  // in Keras 2, Resizing has no data_format
      .from_keras = resizing_from_keras,
      .onnx = resizing_to_onnx,
      .torch = resizing_to_torch,
  });
}

}  // namespace dtrain
