#include "interop/keras/import/serialized.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "config/yaml/scalar.h"
#include "interop/keras/files/json.h"
#include "interop/keras/import/layer_reader.h"

namespace dtrain {

std::string KerasObject::kind_in(const RegistryBase& table) const {
  const std::string kind = table.canonical(name);
  return kind.empty() && !function.empty() ? table.canonical(function) : kind;
}

KerasObject read_keras_object(const Json& written) {
  if (written.is_string()) return {written.as_string()};
  KerasObject object{text_at(written, "class_name")};
  // Keras 2.11 to 2.15 write the class name "Custom>Adam". The prefix distinguishes the class from the Adam
  // of Keras 2.10.
  constexpr std::string_view kPackage = "Custom>";
  if (object.name.starts_with(kPackage)) object.name.erase(0, kPackage.size());
  const Json* config = value_at(written, "config");
  if (config && config->is_string()) object.name = config->as_string();
  if (config && config->is_object()) object.options = *config;
  if (const Json* function = value_at(object.options, "fn"); function)
    object.function = read_keras_object(*function).name;
  return object;
}

ConfigNode option_of_keras(const Json& value) {
  if (!value.is_number() || value.is_int()) return config_of_json(value);
  const double number = value.as_double();
  if (!(std::abs(number) <= std::numeric_limits<float>::max())) return config_of_json(value);
  const auto short_form = static_cast<float>(number);
  return ConfigNode::scalar(static_cast<double>(short_form) == number ? real_text(short_form)
                                                                      : real_text(number));
}

KindOptions::KindOptions(const RegistryBase& table, std::string kind, const ConfigNode& defaults)
    : kind_(std::move(kind)), fields_(table.fields(kind_)) {
  if (defaults.is_mapping()) defaults_ = defaults.entries().front().second;
}

bool KindOptions::has(std::string_view option) const {
  return std::find(fields_.begin(), fields_.end(), option) != fields_.end();
}

void KindOptions::add(const std::string& option, const Json& value) {
  if (!is_default(option, value)) add(option, option_of_keras(value));
}

void KindOptions::add(const std::string& option, ConfigNode value) {
  options_.push_back(ConfigNode::entry(option, std::move(value)));
}

ConfigNode KindOptions::node() const {
  if (options_.empty()) return ConfigNode::scalar(kind_);
  return ConfigNode::mapping({ConfigNode::entry(kind_, ConfigNode::mapping(options_))});
}

bool KindOptions::is_default(const std::string& option, const Json& value) const {
  const ConfigNode* usual = defaults_.find(option);
  if (!usual || !usual->is_scalar()) return false;
  float number = 0;
  if (value.is_number())
    return parse_real(usual->text(), number) == std::errc() &&
           number == static_cast<float>(value.as_double());
  return usual->text() == option_of_keras(value).text();
}

}  // namespace dtrain
