#include "interop/keras/import/layer_reader.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "config/names/aliases.h"
#include "interop/keras/files/json.h"
#include "interop/layer_formats.h"
#include "nn/constraint.h"
#include "nn/initializer.h"
#include "nn/layer.h"
#include "nn/layers/activations/activation_function.h"
#include "nn/regularizer.h"

namespace dtrain {

namespace {

/// Keys that every Keras layer may have and that do not affect its outputs.
constexpr std::array<std::string_view, 17> kCommonKeys{"name",
                                                       "trainable",
                                                       "dtype",
                                                       "batch_input_shape",
                                                       "batch_shape",
                                                       "input_shape",
                                                       "build_config",
                                                       "registered_name",
                                                       "module",
                                                       "autocast",
                                                       "dynamic",
                                                       "shared_object_id",
                                                       "data_format",
                                                       "input_dtype",
                                                       "quantization_config",
                                                       "lora_rank",
                                                       "activity_regularizer"};

bool ends_in_any(std::string_view key, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return key.ends_with(ending); });
}

/// An object that Keras serialized as "relu" or {class_name, config}.
struct Serialized {
  std::string name;
  Json options = Json::object();
};

Serialized read_serialized(const Json& written) {
  if (written.is_string()) return {written.as_string()};
  Serialized object{text_at(written, "class_name")};
  const Json* config = value_at(written, "config");
  if (config && config->is_string())
    object.name = config->as_string();  // {class_name: "function", config: "relu"}
  if (config && config->is_object()) object.options = *config;
  return object;
}

/// Returns the number if `json` is a number or a (nested) list of equal numbers. Returns nullptr for other
/// JSON.
const Json* single_number(const Json& json) {
  if (json.is_number()) return &json;
  if (!json.is_array() || json.items().empty()) return nullptr;
  const Json* first = single_number(json.items().front());
  for (const Json& item : json.items()) {
    const Json* number = single_number(item);
    if (!first || !number || number->as_double() != first->as_double()) return nullptr;
  }
  return first;
}

ConfigNode kind_with(const std::string& name, std::vector<ConfigNode::Entry> options) {
  if (options.empty()) return ConfigNode::scalar(name);
  return ConfigNode::mapping({ConfigNode::entry(name, ConfigNode::mapping(std::move(options)))});
}

ConfigNode number_node(double value) {
  return config_of_json(Json(value));
}

/// Keras 1 and 2 write initializers such as "he_normal" as a VarianceScaling with options. Returns the name
/// of the initializer with these options; "" if there is none.
std::string name_of_variance_scaling(const Json& options) {
  const Json* scale = value_at(options, "scale");
  const std::string mode = text_at(options, "mode"), distribution = text_at(options, "distribution");
  if (!scale || !scale->is_number()) return "";
  const bool is_uniform = distribution == "uniform";
  if (!is_uniform && distribution != "normal" && distribution != "truncated_normal") return "";
  const std::string suffix = is_uniform ? "_uniform" : "_normal";
  if (scale->as_double() == 1 && mode == "fan_avg") return "glorot" + suffix;
  if (scale->as_double() == 1 && mode == "fan_in") return "lecun" + suffix;
  if (scale->as_double() == 2 && mode == "fan_in") return "he" + suffix;
  return "";
}

}  // namespace

ConfigNode config_of_json(const Json& json) {
  if (json.is_null()) return {};
  if (json.is_object()) {
    std::vector<ConfigNode::Entry> entries;
    for (const auto& [key, value] : json.entries())
      entries.push_back(ConfigNode::entry(key, config_of_json(value)));
    return ConfigNode::mapping(std::move(entries));
  }
  if (json.is_array()) {
    std::vector<ConfigNode> items;
    for (const Json& item : json.items()) items.push_back(config_of_json(item));
    return ConfigNode::sequence(std::move(items));
  }
  if (json.is_string()) return ConfigNode::scalar(json.as_string());
  return ConfigNode::scalar(json.dump());
}

const Json* KerasLayerReader::find(const char* key) const {
  return value_at(config_, key);
}

double KerasLayerReader::number(const char* key, double otherwise) const {
  const Json* value = find(key);
  // Keras writes a NumPy number as an object with class_name "__numpy__".
  if (value && value->is_object()) value = value_at(*value, "value");
  return value && value->is_number() ? value->as_double() : otherwise;
}

void KerasLayerReader::skip(std::initializer_list<std::string_view> keys) {
  skipped_.insert(skipped_.end(), keys.begin(), keys.end());
}

bool KerasLayerReader::is_skipped(std::string_view key) const {
  return std::find(kCommonKeys.begin(), kCommonKeys.end(), key) != kCommonKeys.end() ||
         std::find(skipped_.begin(), skipped_.end(), key) != skipped_.end();
}

void KerasLayerReader::expect(const char* key, const Json& value) {
  skip({key});
  const Json* found = find(key);
  if (!found) return;
  const Json* number = single_number(*found);
  const Json& compared = number ? *number : *found;
  const bool is_equal = compared.is_number() && value.is_number() ? compared.as_double() == value.as_double()
                                                                  : compared.dump() == value.dump();
  if (!is_equal) add_problem(fmt::format("has {}: {}", key, found->dump()));
}

void KerasLayerReader::read_groups(const std::string& kind) {
  const std::vector<std::string>& fields = registry<Layer>().fields(kind);
  const bool has_option = std::find(fields.begin(), fields.end(), "groups") != fields.end();
  if (!has_option || number("groups", 1) == 1) expect("groups", 1);
}

void KerasLayerReader::expect_last_axis(const char* key) {
  skip({key});
  const Json* axis = find(key);
  if (!axis) return;
  const bool is_list = axis->is_array() && axis->items().size() == 1;
  const Json& number = is_list ? axis->items().front() : *axis;
  if (!number.is_int()) return add_problem(fmt::format("has {}: {}", key, axis->dump()));
  if (number.as_int() != -1) last_axis_ = number.as_int();
}

void KerasLayerReader::expect_input_width(const char* key) {
  skip({key});
  const Json* const width = find(key);
  if (!width || (width->is_array() && width->items().empty())) return;
  const bool is_list = width->is_array() && width->items().size() == 1;
  const Json& number = is_list ? width->items().front() : *width;
  if (!number.is_int()) return add_problem(fmt::format("has {}: {}", key, width->dump()));
  output_width_ = number.as_int();
}

ConfigNode KerasLayerReader::activation(const Json& written) {
  if (written.is_null()) return {};
  const Serialized object = read_serialized(written);
  const std::string name = registry<ActivationFunction>().canonical(object.name);
  if (name.empty()) {
    add_problem(fmt::format("has the activation '{}'", object.name.empty() ? written.dump() : object.name));
    return {};
  }
  const auto option = [&](const char* key, const char* other, double otherwise) {
    const Json* value = value_at(object.options, key);
    if (!value) value = value_at(object.options, other);
    return value && value->is_number() ? value->as_double() : otherwise;
  };
  if (const Json* const axis = value_at(object.options, "axis");
      axis && axis->dump() != "-1" && axis->dump() != "[-1]")
    add_problem(fmt::format("has the activation '{}' along axis {}", object.name, axis->dump()));
  if (name == "linear") return {};
  if (name == "hard_sigmoid" && keras_major_ < 3)
    return kind_with(name, {ConfigNode::entry("slope", number_node(0.2))});
  if (name == "leaky_relu")
    if (const double slope = option("negative_slope", "alpha", 0.2); slope != 0.2)
      return kind_with(name, {ConfigNode::entry("negative_slope", number_node(slope))});
  if (name == "elu")
    if (const double alpha = option("alpha", "alpha", 1); alpha != 1)
      return kind_with(name, {ConfigNode::entry("alpha", number_node(alpha))});
  return ConfigNode::scalar(name);
}

template <class Base>
ConfigNode KerasLayerReader::object_of_weight(const std::string& key, const Json& written) {
  const Serialized object = read_serialized(written);
  std::string name = registry<Base>().canonical(object.name);
  if (name == "variance_scaling")
    if (const std::string known = name_of_variance_scaling(object.options); !known.empty())
      return ConfigNode::scalar(known);
  std::vector<ConfigNode::Entry> options;
  const std::vector<std::string> fields =
      name.empty() ? std::vector<std::string>() : registry<Base>().fields(name);
  for (const auto& [option, value] : object.options.entries()) {
    if (option == "seed" || option == "dtype" || value.is_null()) continue;
    const bool is_known = std::find(fields.begin(), fields.end(), option) != fields.end();
    if (is_known) options.push_back(ConfigNode::entry(option, config_of_json(value)));
    if (!is_known) name.clear();
  }
  if (!name.empty()) {
    const ConfigNode kind = kind_with(name, std::move(options));
    Diagnostics mistakes;
    registry<Base>().parse(kind, mistakes);
    if (mistakes.count() == 0) return kind;
  }
  left_out_.push_back(fmt::format("{}: {}", key, object.name));
  return {};
}

void KerasLayerReader::check_other(const std::string& key, const Json& value) {
  const bool is_empty = value.is_null() || (value.is_bool() && !value.as_bool()) ||
                        (value.is_array() && value.items().empty()) ||
                        (value.is_object() && value.entries().empty());
  if (is_empty) return;
  if (ends_in_any(key, {"_regularizer", "_constraint"})) {
    left_out_.push_back(fmt::format("{}: {}", key, read_serialized(value).name));
    return;
  }
  add_problem(fmt::format("has {}: {}", key, value.dump()));
}

ConfigNode KerasLayerReader::activity_regularizer() {
  const Json* const written = find("activity_regularizer");
  if (!written) return {};
  const ConfigNode found = object_of_weight<Regularizer>("activity_regularizer", *written);
  Diagnostics mistakes;
  if (found.is_null() || !registry<Regularizer>().parse(found, mistakes)->orthogonal) return found;
  left_out_.push_back("activity_regularizer: " + read_serialized(*written).name);
  return {};
}

ConfigNode KerasLayerReader::option(const std::string& key, const Json& written) {
  if (key.ends_with("activation")) return activation(written);
  if (key.ends_with("initializer")) return object_of_weight<Initializer>(key, written);
  if (key.ends_with("_regularizer")) return object_of_weight<Regularizer>(key, written);
  if (key.ends_with("_constraint")) return object_of_weight<Constraint>(key, written);
  const Json* const number = single_number(written);
  const bool is_one =
      written.is_array() && number && key != "target_shape" && key != "dims" && key != "data_format";
  return config_of_json(is_one ? *number : written);
}

ConfigNode KerasLayerReader::options(const std::vector<std::string>& names) {
  std::vector<ConfigNode::Entry> entries;
  if (!config_.is_object()) return ConfigNode::mapping({});
  for (const auto& [key, value] : config_.entries()) {
    if (is_skipped(key)) continue;
    if (std::find(names.begin(), names.end(), key) == names.end()) {
      check_other(key, value);
      continue;
    }
    if (value.is_null()) continue;
    if (ConfigNode read = option(key, value); !read.is_null())
      entries.push_back(ConfigNode::entry(key, std::move(read)));
  }
  return ConfigNode::mapping(std::move(entries));
}

ConfigNode KerasLayerReader::layer(const char* key, std::initializer_list<std::string_view> classes,
                                   std::initializer_list<std::string_view> skipped) {
  skip({key});
  const Json* const written = find(key);
  if (!written || written->is_null()) return {};
  const Serialized object = read_serialized(*written);
  const LayerFormats* const row = formats_of_keras_class(object.name);
  const bool is_wanted =
      classes.size() == 0 || std::find(classes.begin(), classes.end(), object.name) != classes.end();
  // Some of dtrain's layers are models in Keras, so the table of formats may have a row for the class of a
  // model. But if a model is an option of another layer, the importer does not convert the model to a dtrain
  // layer (files/restored_layers.h).
  const bool is_model = value_at(object.options, "layers") != nullptr;
  if (!row || !row->from_keras || !is_wanted || is_model) {
    add_problem(fmt::format("has the {} '{}'", key, object.name));
    return {};
  }
  KerasLayerReader inner(object.name, object.options, keras_major_);
  inner.skip(skipped);
  const ConfigNode options = row->from_keras(inner);
  // The inner layer's input has no position axis, so its axis n is axis n + 1 of this layer's input.
  if (const auto axis = inner.last_axis()) last_axis_ = *axis < 0 ? *axis : *axis + 1;
  if (inner.output_width()) output_width_ = inner.output_width();
  if (!inner.activity_regularizer().is_null())
    left_out_.push_back(fmt::format("{}'s activity_regularizer", key));
  for (const std::string& problem : inner.problems()) add_problem(fmt::format("its {} {}", key, problem));
  for (const std::string& setting : inner.left_out())
    left_out_.push_back(fmt::format("{}'s {}", key, setting));
  return ConfigNode::mapping({ConfigNode::entry(row->kind, options)});
}

std::function<ConfigNode(KerasLayerReader&)> options_of_keras(std::string kind) {
  return [kind = std::move(kind)](KerasLayerReader& reader) {
    return reader.options(registry<Layer>().fields(kind));
  };
}

std::function<ConfigNode(KerasLayerReader&)> image_options_of_keras(std::string kind) {
  return [kind = std::move(kind)](KerasLayerReader& reader) {
    reader.read_groups(kind);
    return reader.options(registry<Layer>().fields(kind));
  };
}

}  // namespace dtrain
