#include "interop/keras/import/data_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "interop/keras/files/json.h"

namespace dtrain {

bool has_channels_first(const KerasModelLayer& layer) {
  return text_at(layer.config, "data_format") == "channels_first" && !layer.class_name.ends_with("1D");
}

bool is_along_first_axis(const KerasModelLayer& layer) {
  const Json* axis = value_at(layer.config, "axis");
  if (axis && axis->is_array() && axis->items().size() == 1) axis = &axis->items().front();
  return axis && axis->is_int() && axis->as_int() == 1;
}

bool is_elementwise(const KerasModelLayer& layer) {
  constexpr std::array kClasses{
      "Activation",    "ReLU", "LeakyReLU", "ELU",      "ThresholdedReLU", "Dropout", "GaussianDropout",
      "GaussianNoise", "Add",  "Subtract",  "Multiply", "Average",         "Maximum", "Minimum"};
  return std::find(kClasses.begin(), kClasses.end(), layer.class_name) != kClasses.end() &&
         !text_at(layer.config, "activation").ends_with("softmax");
}

bool gives_image(const KerasModelLayer& layer) {
  const bool is_global = layer.class_name.starts_with("Global");
  return layer.class_name != "Flatten" && (!is_global || is_true_at(layer.config, "keepdims"));
}

ConfigNode with_channels_last(const ConfigNode& options, bool is_volume) {
  const ConfigNode* shared = options.find("shared_axes");
  if (!shared) return options;
  const auto axis = [&](const ConfigNode& written) {
    int number = 0;
    const std::string& text = written.text();
    std::from_chars(text.data(), text.data() + text.size(), number);
    const int last = is_volume ? 4 : 3;
    if (number < 1 || number > last) return written;
    return ConfigNode::scalar(fmt::format("{}", number == 1 ? last : number - 1));
  };
  if (!shared->is_sequence()) return options.with("shared_axes", axis(*shared));
  std::vector<ConfigNode> axes;
  for (const ConfigNode& written : shared->items()) axes.push_back(axis(written));
  return options.with("shared_axes", ConfigNode::sequence(std::move(axes)));
}

}  // namespace dtrain
