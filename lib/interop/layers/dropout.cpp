#include <functional>
#include <string>
#include <utility>

#include "interop/keras/export/options.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/table.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"

namespace dtrain {

namespace {

/// Exports a dropout or noise layer, which returns its input at inference.
void identity_to_onnx(OnnxLayer& layer) {
  layer.set_output(layer.input(0, layer.layout()), layer.layout());
}
void identity_to_torch(TorchLayer& layer) {
  layer.set_output(layer.input(0, layer.layout()), layer.layout());
}

KerasLayerConfig spatial_dropout1d_to_keras(const ConfigNode& options) {
  return {"SpatialDropout1D", keras_options(options), false};
}
KerasLayerConfig spatial_dropout2d_to_keras(const ConfigNode& options) {
  return {"SpatialDropout2D", keras_options(options).set("data_format", "channels_last"), false};
}

LayerFormats training_only(const char* kind, std::function<KerasLayerConfig(const ConfigNode&)> to_keras) {
  const auto from_keras = [kind = std::string(kind)](KerasLayerReader& reader) {
    reader.skip({"seed"});
    return reader.options(registry<Layer>().fields(kind));
  };
  return {.kind = kind,
          .to_keras = std::move(to_keras),
          .from_keras = from_keras,
          .onnx = identity_to_onnx,
          .torch = identity_to_torch};
}

}  // namespace

void add_dropout_formats(std::vector<LayerFormats>& table) {
  table.push_back(training_only("dropout", keras_layer("Dropout")));
  table.push_back(training_only("spatial_dropout1d", spatial_dropout1d_to_keras));
  table.push_back(training_only("spatial_dropout2d", spatial_dropout2d_to_keras));
  table.push_back(training_only("gaussian_noise", keras_layer("GaussianNoise")));
  table.push_back(training_only("gaussian_dropout", keras_layer("GaussianDropout")));
}

}  // namespace dtrain
