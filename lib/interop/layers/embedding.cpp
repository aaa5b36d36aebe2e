#include "interop/keras/layer_reader.h"
#include "interop/keras/options.h"
#include "interop/layers/table.h"
#include "interop/onnx/builder.h"

namespace dtrain {

namespace {

void embedding_to_onnx(OnnxLayer& layer) {
  const std::string rows = layer.parameter("embeddings");
  layer.set_output(
      layer.add("Gather", {rows, layer.input(0, OnnxLayout::channels_last)}, {{"axis", int64_t{0}}}),
      OnnxLayout::channels_last);
}

ConfigNode embedding_from_keras(KerasLayerReader& reader) {
  reader.skip({"input_length"});
  return reader.options({"input_dim", "output_dim", "embeddings_initializer"});
}

}  // namespace

void add_embedding_formats(std::vector<LayerFormats>& table) {
  table.push_back({
      .kind = "embedding",
      .to_keras = keras_layer("Embedding"),
      .from_keras = embedding_from_keras,
      .onnx = embedding_to_onnx,
  });
}

}  // namespace dtrain
