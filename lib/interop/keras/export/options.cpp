#include "interop/keras/export/options.h"

#include <cctype>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "config/schema.h"

namespace dtrain {

namespace {

/// Returns the name of an object that is written as `name` or `{name: options}`.
const std::string& name_of_kind(const ConfigNode& kind) {
  return kind.is_scalar() ? kind.text() : kind.entries().front().first.text();
}

/// Returns the options of an object that is written as `{name: options}`; null if it is written as a bare
/// name.
ConfigNode options_of_kind(const ConfigNode& kind) {
  return kind.is_scalar() ? ConfigNode() : kind.entries().front().second;
}

/// Converts "glorot_uniform" to "GlorotUniform".
std::string camel_case(std::string_view name) {
  std::string camel;
  bool start = true;
  for (const char c : name) {
    if (c != '_') camel += start ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    start = c == '_';
  }
  return camel;
}

/// Returns whether an option's value is an initializer, a regularizer or a constraint.
bool is_object_of_weight(std::string_view key) {
  return key.ends_with("initializer") || key.ends_with("_regularizer") || key.ends_with("_constraint");
}

/// Converts an initializer, a regularizer or a constraint: Keras's class name is dtrain's name in camel case,
/// and the options have the same names.
Json keras_object(const ConfigNode& kind) {
  const ConfigNode options = options_of_kind(kind);
  return Json::object()
      .set("class_name", camel_case(name_of_kind(kind)))
      .set("config", options.is_null() ? Json::object() : to_json(options));
}

/// Returns the value of a Keras layer's `activation` option. If Keras has the function only as a layer,
/// returns "linear", because the function is then written as a separate layer.
std::string keras_function(const ConfigNode& activation) {
  const KerasActivation keras = keras_activation(activation);
  return keras.layer.empty() ? keras.function : "linear";
}

}  // namespace

Json keras_options(const ConfigNode& options) {
  Json config = Json::object();
  if (options.is_null()) return config;
  for (const auto& [key, value] : options.entries()) {
    if (is_object_of_weight(key.text()))
      config.set(key.text(), keras_object(value));
    else if (key.text() == "activation")
      config.set(key.text(), keras_function(value));
    else
      config.set(key.text(), to_json(value));
  }
  return config;
}

Json keras_inner_layer(const ConfigNode& layer, std::string& missing) {
  const KerasLayerConfig keras = formats_of(name_of_kind(layer)).to_keras(options_of_kind(layer));
  if (!keras.missing.empty()) missing = keras.missing;
  return Json::object()
      .set("module", "keras.layers")
      .set("class_name", keras.class_name)
      .set("config", keras.config)
      .set("registered_name", Json());
}

std::function<KerasLayerConfig(const ConfigNode&)> keras_layer(std::string class_name) {
  return [class_name = std::move(class_name)](const ConfigNode& options) {
    return KerasLayerConfig{class_name, keras_options(options)};
  };
}

std::function<KerasLayerConfig(const ConfigNode&)> keras_image_layer(std::string class_name) {
  return [class_name = std::move(class_name)](const ConfigNode& options) {
    return KerasLayerConfig{class_name, keras_options(options).set("data_format", "channels_last")};
  };
}

KerasActivation keras_activation(const ConfigNode& activation) {
  if (activation.is_null()) return {"linear", ""};
  const std::string& name = name_of_kind(activation);
  const ConfigNode options = options_of_kind(activation);
  // A bare name stands for a function with default options.
  if (options.is_null() && name != "relu6") return {name, ""};
  const auto number = [&](std::string_view key) { return to_json(*options.find(key)).as_double(); };
  const auto optional_number = [&](std::string_view key) {
    const Json value = to_json(*options.find(key));
    return value.is_null() ? value : Json(value.as_double());
  };
  const auto relu = [](Json max_value, double negative_slope, double threshold) {
    return KerasActivation{"relu", "ReLU",
                           Json::object()
                               .set("max_value", std::move(max_value))
                               .set("negative_slope", negative_slope)
                               .set("threshold", threshold)};
  };
  // Keras's files cannot store options of activation functions, so a function with options other than the
  // defaults is written as a layer. Both Keras 2 and Keras 3 read the option `alpha` of LeakyReLU.
  if (name == "relu6") return relu(6.0, 0, 0);
  if (name == "relu")
    return relu(optional_number("max_value"), number("negative_slope"), number("threshold"));
  if (name == "leaky_relu" && number("negative_slope") != 0.2)
    return {name, "LeakyReLU", Json::object().set("alpha", number("negative_slope"))};
  if (name == "elu" && number("alpha") != 1)
    return {name, "ELU", Json::object().set("alpha", number("alpha"))};
  // Keras has no function for the approximated gelu or for a hard_sigmoid with this slope. The name below is
  // unknown to Keras, so loading the model fails unless custom_objects contains a function of this name. This
  // failure is better than silently loading a different model.
  if (name == "gelu" && to_json(*options.find("approximate")).as_bool()) return {"gelu_tanh", ""};
  if (name == "hard_sigmoid") return {fmt::format("hard_sigmoid_{}", number("slope")), ""};
  return {name, ""};
}

}  // namespace dtrain
