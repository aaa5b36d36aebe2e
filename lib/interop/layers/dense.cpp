#include <fmt/format.h>

#include "interop/keras/export/options.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/table.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"

namespace dtrain {

namespace {

/// Name of the weights of an embedding that a dense layer shares. The dense layer's kernel is the transposed
/// array.
constexpr const char* kEmbeddings = "embeddings";

void dense_to_onnx(OnnxLayer& layer) {
  const std::string x = layer.input(0, ExportLayout::channels_last);
  const std::string kernel =
      layer.has_parameter(kEmbeddings)
          ? layer.add("Transpose", {layer.parameter(kEmbeddings)}, {{"perm", std::vector<int64_t>{1, 0}}})
          : layer.parameter("kernel");
  const bool has_bias = layer.has_parameter("bias");
  if (layer.input_spec().shape.rank() == 1) {
    std::vector<std::string> inputs = {x, kernel};
    if (has_bias) inputs.push_back(layer.parameter("bias"));
    layer.set_output(layer.add("Gemm", inputs), ExportLayout::channels_last);
    return;
  }
  std::string y = layer.add("MatMul", {x, kernel});
  if (has_bias) y = layer.add("Add", {y, layer.parameter("bias")});
  layer.set_output(y, ExportLayout::channels_last);
}

void dense_to_torch(TorchLayer& layer) {
  if (layer.has_parameter(kEmbeddings))
    return layer.set_output(
        layer.add(fmt::format("F.linear({}, {}.weight)", layer.input(0, ExportLayout::channels_last),
                              layer.module())),
        ExportLayout::channels_last);
  const bool has_bias = layer.has_parameter("bias");
  layer.set_module(fmt::format("nn.Linear({}, {}{})", layer.input_spec().shape.back(),
                               layer.output_spec().shape.back(), has_bias ? "" : ", bias=False"));
  layer.weight("weight", "kernel", {1, 0});
  if (has_bias) layer.weight("bias", "bias");
  layer.set_output(
      layer.add(fmt::format("{}({})", layer.module(), layer.input(0, ExportLayout::channels_last))),
      ExportLayout::channels_last);
}

}  // namespace

void add_dense_formats(std::vector<LayerFormats>& table) {
  table.push_back({
      .kind = "dense",
      .to_keras = keras_layer("Dense"),
      .from_keras = options_of_keras("dense"),
      .onnx = dense_to_onnx,
      .torch = dense_to_torch,
  });
}

}  // namespace dtrain
