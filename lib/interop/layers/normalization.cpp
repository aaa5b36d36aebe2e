#include "config/schema.h"
#include "interop/keras/options.h"
#include "interop/layers/table.h"

namespace dtrain {

namespace {

/// Keras before 2.12 does not know `synchronized`, and Keras 3 takes it with TensorFlow only, so the config
/// has the key only if it is true.
KerasLayerConfig batch_normalization_to_keras(const ConfigNode& options) {
  const bool synchronized = to_json(*options.find("synchronized")).as_bool();
  constexpr std::string_view kSynchronized[] = {"synchronized"};
  return {"BatchNormalization", keras_options(synchronized ? options : options.without(kSynchronized))};
}

}  // namespace

void add_normalization_formats(std::vector<LayerFormats>& table) {
  table.push_back({"batch_normalization", batch_normalization_to_keras});
  table.push_back({"layer_normalization", keras_layer("LayerNormalization")});
}

}  // namespace dtrain
