#include "interop/layer_formats.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace dtrain {

const LayerFormats& formats_of(std::string_view kind) {
  const std::vector<LayerFormats>& rows = all_layer_formats();
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const LayerFormats& one) { return one.kind == kind; });
  if (row == rows.end())
    throw std::logic_error(fmt::format("lib/interop/layers has no row for the layer '{}'", kind));
  return *row;
}

const LayerFormats* formats_of_keras_class(const std::string& class_name) {
  const std::string kind = registry<Layer>().canonical(class_name);
  if (!kind.empty()) return &formats_of(kind);
  for (const LayerFormats& row : all_layer_formats())
    if (std::find(row.keras_classes.begin(), row.keras_classes.end(), class_name) != row.keras_classes.end())
      return &row;
  return nullptr;
}

bool kind_has_weights(std::string_view kind) {
  // As in Keras, the scale of rms_normalization has no initializer option. bidirectional and time_distributed
  // have the weights of their inner layers.
  if (kind == "rms_normalization" || kind == "bidirectional" || kind == "time_distributed") return true;
  const std::vector<std::string>& fields = registry<Layer>().fields(std::string(kind));
  return std::any_of(fields.begin(), fields.end(),
                     [](const std::string& field) { return field.ends_with("initializer"); });
}

ConfigNode options_of(const Configured<Layer>& layer) {
  return layer.resolved.is_mapping() ? layer.resolved.entries().front().second : ConfigNode();
}

KerasLayerConfig keras_config_of(const Configured<Layer>& layer) {
  return formats_of(layer.name).to_keras(options_of(layer));
}

}  // namespace dtrain
