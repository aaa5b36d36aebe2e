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

ConfigNode options_of(const Configured<Layer>& layer) {
  return layer.resolved.is_mapping() ? layer.resolved.entries().front().second : ConfigNode();
}

KerasLayerConfig keras_config_of(const Configured<Layer>& layer) {
  return formats_of(layer.name).to_keras(options_of(layer));
}

}  // namespace dtrain
