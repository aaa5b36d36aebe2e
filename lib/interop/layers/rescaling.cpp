#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "interop/keras/export/options.h"
#include "interop/keras/files/json.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/layers/table.h"
#include "interop/onnx/builder.h"
#include "interop/torch/builder.h"

namespace dtrain {

namespace {

/// Returns the values of an option that is either one number or a list with one number for each channel.
std::vector<float> numbers_of(const Json& option) {
  std::vector<float> numbers;
  if (!option.is_array()) return {static_cast<float>(option.as_double())};
  for (const Json& number : option.items()) numbers.push_back(static_cast<float>(number.as_double()));
  return numbers;
}

void rescaling_to_onnx(OnnxLayer& layer) {
  const auto constant = [&](const char* option) {
    const std::vector<float> numbers = numbers_of(layer.options().at(option));
    return numbers.size() == 1 ? layer.constant(numbers[0]) : layer.constant(numbers);
  };
  const bool is_list = layer.options().at("scale").is_array() || layer.options().at("offset").is_array();
  const ExportLayout layout = is_list ? ExportLayout::channels_last : layer.layout();
  const std::string scaled = layer.add("Mul", {layer.input(0, layout), constant("scale")});
  layer.set_output(layer.add("Add", {scaled, constant("offset")}), layout);
}

void rescaling_to_torch(TorchLayer& layer) {
  const auto constant = [&](const char* option, const std::string& x) {
    const std::vector<float> numbers = numbers_of(layer.options().at(option));
    return numbers.size() == 1 ? fmt::format("{}", numbers[0])
                               : fmt::format("{}.new_tensor([{}])", x, fmt::join(numbers, ", "));
  };
  const bool is_list = layer.options().at("scale").is_array() || layer.options().at("offset").is_array();
  const ExportLayout layout = is_list ? ExportLayout::channels_last : layer.layout();
  const std::string x = layer.input(0, layout);
  layer.set_output(layer.add(fmt::format("{} * {} + {}", x, constant("scale", x), constant("offset", x))),
                   layout);
}

/// Converts Keras's config. Keras writes a NumPy array as {class_name: "__numpy__", config: {value: [...]}}.
ConfigNode rescaling_from_keras(KerasLayerReader& reader) {
  std::vector<ConfigNode::Entry> options;
  for (const char* key : {"scale", "offset"}) {
    const Json* value = reader.find(key);
    if (value && value->is_object()) value = value_at(*value, "config");
    if (value && value->is_object()) value = value_at(*value, "value");
    if (value) options.push_back(ConfigNode::entry(key, config_of_json(*value)));
  }
  reader.skip({"scale", "offset"});
  reader.options({});
  return ConfigNode::mapping(std::move(options));
}

}  // namespace

void add_rescaling_formats(std::vector<LayerFormats>& table) {
  table.push_back({
      .kind = "rescaling",
      .to_keras = keras_layer("Rescaling"),
      .from_keras = rescaling_from_keras,
      .onnx = rescaling_to_onnx,
      .torch = rescaling_to_torch,
  });
}

}  // namespace dtrain
