#include <fmt/format.h>

#include "interop/keras/layer_reader.h"
#include "interop/keras/options.h"
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
    const Window window = pooling_window(layer.options());
    const Padding2 padding = padding_of(window, layer.input_spec().shape);
    std::vector<OnnxAttribute> attributes = {
        {"kernel_shape", std::vector<int64_t>{window.size.height, window.size.width}},
        {"strides", std::vector<int64_t>{window.strides.height, window.strides.width}},
        {"pads", std::vector<int64_t>{padding.top, padding.left, padding.bottom, padding.right}}};
    if (op == "AveragePool") attributes.emplace_back("count_include_pad", int64_t{0});
    layer.set_output(layer.add(op, {layer.input(0, ExportLayout::channels_first)}, std::move(attributes)),
                     ExportLayout::channels_first);
  };
}

void max_pooling_to_torch(TorchLayer& layer) {
  const Window window = pooling_window(layer.options());
  const std::string x = torch_padded(layer.input(0, ExportLayout::channels_first),
                                     padding_of(window, layer.input_spec().shape), "float('-inf')");
  layer.set_output(layer.add(fmt::format("F.max_pool2d({}, {}, {})", x, torch_size(window.size),
                                         torch_size(window.strides))),
                   ExportLayout::channels_first);
}

/// The mean is over the pixels that exist: average_pool() of the script divides by their number.
void average_pooling_to_torch(TorchLayer& layer) {
  const Window window = pooling_window(layer.options());
  const Padding2 padding = padding_of(window, layer.input_spec().shape);
  layer.set_output(
      layer.add(fmt::format("average_pool({}, {}, {}, {})", layer.input(0, ExportLayout::channels_first),
                            torch_size(window.size), torch_size(window.strides), torch_sides(padding))),
      ExportLayout::channels_first);
}

std::function<void(TorchLayer&)> global_pooling_to_torch(const std::string& function) {
  return [function](TorchLayer& layer) {
    const bool keeps = layer.output_spec().shape.rank() > 1;
    layer.set_output(layer.add(fmt::format("{}.{}((2, 3){})", layer.input(0, ExportLayout::channels_first),
                                           function, keeps ? ", keepdim=True" : "")),
                     keeps ? ExportLayout::channels_first : ExportLayout::channels_last);
  };
}

/// Keras writes the strides even if they are the pool_size, their default.
std::function<ConfigNode(KerasLayerReader&)> pooling_from_keras(std::string kind) {
  return [kind = std::move(kind)](KerasLayerReader& reader) {
    const Json *size = reader.find("pool_size"), *strides = reader.find("strides");
    if (size && strides && size->dump() == strides->dump()) reader.skip({"strides"});
    return image_options_of_keras(kind)(reader);
  };
}

}  // namespace

void add_pooling_formats(std::vector<LayerFormats>& table) {
  table.push_back({
      .kind = "max_pooling2d",
      .to_keras = keras_image_layer("MaxPooling2D"),
      .from_keras = pooling_from_keras("max_pooling2d"),
      .onnx = pooling_to_onnx("MaxPool"),
      .torch = max_pooling_to_torch,
  });
  table.push_back({
      .kind = "average_pooling2d",
      .to_keras = keras_image_layer("AveragePooling2D"),
      .from_keras = pooling_from_keras("average_pooling2d"),
      .onnx = pooling_to_onnx("AveragePool"),
      .torch = average_pooling_to_torch,
  });
  table.push_back({
      .kind = "global_max_pooling2d",
      .to_keras = keras_image_layer("GlobalMaxPooling2D"),
      .from_keras = image_options_of_keras("global_max_pooling2d"),
      .onnx = global_pooling_to_onnx("GlobalMaxPool"),
      .torch = global_pooling_to_torch("amax"),
  });
  table.push_back({
      .kind = "global_average_pooling2d",
      .to_keras = keras_image_layer("GlobalAveragePooling2D"),
      .from_keras = image_options_of_keras("global_average_pooling2d"),
      .onnx = global_pooling_to_onnx("GlobalAveragePool"),
      .torch = global_pooling_to_torch("mean"),
  });
}

}  // namespace dtrain
