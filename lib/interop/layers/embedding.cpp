#include <fmt/format.h>

#include "interop/keras/export/options.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/table.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"

namespace dtrain {

namespace {

void embedding_to_onnx(OnnxLayer& layer) {
  const std::string rows = layer.parameter("embeddings");
  layer.set_output(
      layer.add("Gather", {rows, layer.input(0, ExportLayout::channels_last)}, {{"axis", int64_t{0}}}),
      ExportLayout::channels_last);
}

void embedding_to_torch(TorchLayer& layer) {
  layer.set_module(fmt::format("nn.Embedding({}, {})", layer.options().at("input_dim").as_int(),
                               layer.options().at("output_dim").as_int()));
  layer.weight("weight", "embeddings");
  layer.set_output(
      layer.add(fmt::format("{}({})", layer.module(), layer.input(0, ExportLayout::channels_last))),
      ExportLayout::channels_last);
}

ConfigNode embedding_from_keras(KerasLayerReader& reader) {
  reader.skip({"input_length"});
  reader.expect("reverse_dtype", "float32");
  reader.expect("tie_weights", true);
  return options_of_keras("embedding")(reader);
}

ConfigNode masking_from_keras(KerasLayerReader& reader) {
  return options_of_keras("masking")(reader);
}

}  // namespace

void add_embedding_formats(std::vector<LayerFormats>& table) {
  table.push_back({
      .kind = "embedding",
      .to_keras = keras_layer("Embedding"),
      .from_keras = embedding_from_keras,
      .onnx = embedding_to_onnx,
      .torch = embedding_to_torch,
      .keras_classes = {kKerasReversibleEmbedding},
  });
  table.push_back({.kind = "masking", .to_keras = keras_layer("Masking"), .from_keras = masking_from_keras});
}

}  // namespace dtrain
