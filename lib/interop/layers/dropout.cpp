#include "interop/keras/export/options.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/table.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"

namespace dtrain {

namespace {

/// Dropout is the identity at inference.
void dropout_to_onnx(OnnxLayer& layer) {
  layer.set_output(layer.input(0, layer.layout()), layer.layout());
}

ConfigNode dropout_from_keras(KerasLayerReader& reader) {
  reader.skip({"seed"});
  return reader.options({"rate"});
}

void dropout_to_torch(TorchLayer& layer) {
  layer.set_output(layer.input(0, layer.layout()), layer.layout());
}

}  // namespace

void add_dropout_formats(std::vector<LayerFormats>& table) {
  table.push_back({
      .kind = "dropout",
      .to_keras = keras_layer("Dropout"),
      .from_keras = dropout_from_keras,
      .onnx = dropout_to_onnx,
      .torch = dropout_to_torch,
  });
}

}  // namespace dtrain
