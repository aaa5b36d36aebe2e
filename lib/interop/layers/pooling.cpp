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

std::function<void(OnnxLayer&)> pooling_to_onnx(const std::string& op) {
  return [op](OnnxLayer& layer) {
    const Shape& image = layer.input_spec().shape;
    const Window window = pooling_window(layer.options(), image);
    std::vector<OnnxAttribute> attributes = {{"kernel_shape", axes_of(window.size, image)},
                                             {"strides", axes_of(window.strides, image)},
                                             {"pads", pads_of(padding_of(window, image), image)}};
    if (op == "AveragePool") attributes.emplace_back("count_include_pad", int64_t{0});
    layer.set_output(layer.add(op, {layer.input(0, ExportLayout::channels_first)}, std::move(attributes)),
                     ExportLayout::channels_first);
  };
}

void max_pooling_to_torch(TorchLayer& layer) {
  const Shape& image = layer.input_spec().shape;
  const Window window = pooling_window(layer.options(), image);
  const std::string x =
      torch_padded(layer.input(0, ExportLayout::channels_first), padding_of(window, image), "float('-inf')");
  layer.set_output(layer.add(fmt::format("F.max_pool{}({}, {}, {})", dimensions_of(image), x,
                                         torch_size(axes_of(window.size, image)),
                                         torch_size(axes_of(window.strides, image)))),
                   ExportLayout::channels_first);
}

/// Adds a call of average_pool(), a function in the exported script. It divides by the number of pixels
/// inside the image, so that the mean does not include padding.
void average_pooling_to_torch(TorchLayer& layer) {
  const Shape& image = layer.input_spec().shape;
  const Window window = pooling_window(layer.options(), image);
  layer.set_output(layer.add(fmt::format(
                       "average_pool({}, {}, {}, {})", layer.input(0, ExportLayout::channels_first),
                       torch_size(axes_of(window.size, image)), torch_size(axes_of(window.strides, image)),
                       torch_sides(padding_of(window, image)))),
                   ExportLayout::channels_first);
}

std::function<void(TorchLayer&)> global_pooling_to_torch(const std::string& function) {
  return [function](TorchLayer& layer) {
    const bool keeps = layer.output_spec().shape.rank() > 1;
    const char* axes = layer.input_spec().shape.rank() == 4 ? "(2, 3, 4)" : "(2, 3)";
    layer.set_output(layer.add(fmt::format("{}.{}({}{})", layer.input(0, ExportLayout::channels_first),
                                           function, axes, keeps ? ", keepdim=True" : "")),
                     keeps ? ExportLayout::channels_first : ExportLayout::channels_last);
  };
}

/// Returns a conversion from Keras's config. Keras always writes the strides, even if they have the default
/// value, which is pool_size.
std::function<ConfigNode(KerasLayerReader&)> pooling_from_keras(std::string kind) {
  return [kind = std::move(kind)](KerasLayerReader& reader) {
    const Json *size = reader.find("pool_size"), *strides = reader.find("strides");
    if (size && strides && size->dump() == strides->dump()) reader.skip({"strides"});
    return image_options_of_keras(kind)(reader);
  };
}

}  // namespace

void add_pooling_formats(std::vector<LayerFormats>& table) {
  for (const std::string axes : {"2d", "3d"}) {
    const std::string suffix = axes == "2d" ? "2D" : "3D";
    const auto add = [&](const std::string& kind, const std::string& keras, auto from_keras,
                         std::function<void(OnnxLayer&)> onnx, std::function<void(TorchLayer&)> torch) {
      table.push_back({
          .kind = kind + axes,
          .to_keras = keras_image_layer(keras + suffix),
          .from_keras = from_keras(kind + axes),
          .onnx = std::move(onnx),
          .torch = std::move(torch),
      });
    };
    add("max_pooling", "MaxPooling", pooling_from_keras, pooling_to_onnx("MaxPool"), max_pooling_to_torch);
    add("average_pooling", "AveragePooling", pooling_from_keras, pooling_to_onnx("AveragePool"),
        average_pooling_to_torch);
    add("global_max_pooling", "GlobalMaxPooling", image_options_of_keras,
        global_pooling_to_onnx("GlobalMaxPool"), global_pooling_to_torch("amax"));
    add("global_average_pooling", "GlobalAveragePooling", image_options_of_keras,
        global_pooling_to_onnx("GlobalAveragePool"), global_pooling_to_torch("mean"));
  }
}

}  // namespace dtrain
