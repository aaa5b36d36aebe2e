#include "interop/keras/options.h"
#include "interop/layers/table.h"

namespace dtrain {

namespace {

KerasLayerConfig to_keras(const ConfigNode& options) {
  const KerasActivation activation = keras_activation(*options.find("activation"));
  if (activation.layer.empty()) return {"Activation", keras_options(options)};
  return {activation.layer, activation.layer_config};
}

}  // namespace

void add_activation_formats(std::vector<LayerFormats>& table) {
  table.push_back({"activation", to_keras});
}

}  // namespace dtrain
