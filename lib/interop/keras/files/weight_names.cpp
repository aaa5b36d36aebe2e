#include "interop/keras/files/weight_names.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "interop/keras/files/class_paths.h"
#include "interop/keras/files/json.h"
#include "interop/keras/files/model_tree.h"
#include "interop/keras/files/restored_layers.h"

namespace dtrain {

namespace {

using Names = std::vector<std::string>;

/// The weights of a layer class in Keras's order. Each weight may depend on an option of the layer.
struct ClassWeights {
  std::string_view class_name;  // in snake case
  struct Weight {
    const char* name;
    // bool option that must be true (its default) for the weight to exist; null: the weight always exists
    const char* option;
  };
  std::vector<Weight> weights;
};

const std::vector<ClassWeights>& classes() {
  static const std::vector<ClassWeights> all{
      {"dense", {{"kernel", nullptr}, {"bias", "use_bias"}}},
      {"conv1d", {{"kernel", nullptr}, {"bias", "use_bias"}}},
      {"conv2d", {{"kernel", nullptr}, {"bias", "use_bias"}}},
      {"conv3d", {{"kernel", nullptr}, {"bias", "use_bias"}}},
      {"conv1d_transpose", {{"kernel", nullptr}, {"bias", "use_bias"}}},
      {"conv2d_transpose", {{"kernel", nullptr}, {"bias", "use_bias"}}},
      {"depthwise_conv2d", {{"depthwise_kernel", nullptr}, {"bias", "use_bias"}}},
      {"separable_conv2d",
       {{"depthwise_kernel", nullptr}, {"pointwise_kernel", nullptr}, {"bias", "use_bias"}}},
      {"embedding", {{"embeddings", nullptr}}},
      {"reversible_embedding", {{"embeddings", nullptr}}},
      {"lstm", {{"kernel", nullptr}, {"recurrent_kernel", nullptr}, {"bias", "use_bias"}}},
      {"gru", {{"kernel", nullptr}, {"recurrent_kernel", nullptr}, {"bias", "use_bias"}}},
      {"simple_rnn", {{"kernel", nullptr}, {"recurrent_kernel", nullptr}, {"bias", "use_bias"}}},
      {"bidirectional", {{"kernel", nullptr}, {"recurrent_kernel", nullptr}, {"bias", "use_bias"}}},
      {"p_re_lu", {{"alpha", nullptr}}},
      {"batch_normalization",
       {{"gamma", "scale"}, {"beta", "center"}, {"moving_mean", nullptr}, {"moving_variance", nullptr}}},
      {"layer_normalization", {{"gamma", "scale"}, {"beta", "center"}}},
      {"group_normalization", {{"gamma", "scale"}, {"beta", "center"}}},
      {"rms_normalization", {{"scale", nullptr}}},
  };
  return all;
}

/// Returns the names of the `count` weights of a layer. If the class is unknown or the count does not fit the
/// class, returns their indices as names. `config` is null if the file does not contain it.
Names weight_names_of(std::string_view class_name, const Json& config, size_t count) {
  Names numbers, names;
  for (size_t i = 0; i < count; ++i) numbers.push_back(std::to_string(i));
  const auto known = std::find_if(classes().begin(), classes().end(),
                                  [&](const ClassWeights& one) { return one.class_name == class_name; });
  if (known == classes().end()) return numbers;
  Names always;
  for (const auto& [name, option] : known->weights) {
    const Json* value = option ? value_at(config, option) : nullptr;
    if (!value || !value->is_bool() || value->as_bool()) names.emplace_back(name);
    if (!option) always.emplace_back(name);
  }
  if (names.size() == count) return names;
  return always.size() == count ? always : numbers;
}

/// The layer that a group of weights belongs to.
struct NamedLayer {
  std::string name, class_name;
  Json config;
  std::string_view prefix = {};  // prefix of the weights' names, such as "query/"
};

void add_layers(const KerasModel& model, const std::string& path, const std::string& prefix,
                std::map<std::string, NamedLayer>& layers) {
  KerasClassNumbers numbers;
  for (const KerasModelLayer& layer : model.layers) {
    const std::string group = fmt::format("{}layers/{}", path, numbers.next(layer.file_class()));
    if (layer.model) {
      add_layers(*layer.model, group + "/", prefix + layer.name + "/", layers);
    } else if (layer.is_restored_model) {
      for (const KerasLayerPart& part : parts_of_restored(layer))
        layers.emplace(
            fmt::format("{}/{}", group, part.group),
            NamedLayer{prefix + layer.name, std::string(part.class_name), layer.config, part.prefix});
    } else {
      layers.emplace(group,
                     NamedLayer{prefix + layer.name, keras_snake_case(layer.class_name), layer.config});
    }
  }
}

/// Returns a name without the number at its end: "dense" for "dense_3".
std::string without_number(const std::string& name) {
  const size_t number = name.find_last_not_of("0123456789");
  const bool is_numbered = number != std::string::npos && name[number] == '_' && number + 1 < name.size();
  return is_numbered ? name.substr(0, number) : name;
}

/// Returns the layer of a group of weights, derived from the path of the group. Used for groups that the
/// model's configuration does not describe.
NamedLayer layer_of_path(const KerasWeightGroup& group) {
  Names parts;
  for (size_t begin = 0; begin <= group.name.size();) {
    const size_t end = std::min(group.name.find('/', begin), group.name.size());
    const std::string part = group.name.substr(begin, end - begin);
    if (part != "layers" && part != "_layer_checkpoint_dependencies") parts.push_back(part);
    begin = end + 1;
  }
  NamedLayer layer;
  if (parts.empty()) return layer;
  layer.class_name = without_number(parts.back());
  if (!group.layer.empty()) parts.back() = group.layer;
  layer.name = fmt::format("{}", fmt::join(parts, "/"));
  return layer;
}

/// If a group's name ends with the path of a part of a layer (such as "/cell"), removes this path from the
/// name and returns the part. Otherwise, returns an empty part.
KerasLayerPart take_part(std::string& group) {
  for (const KerasLayerPart& part : kKerasLayerParts) {
    const std::string end = fmt::format("/{}", part.group);
    if (!group.ends_with(end)) continue;
    group.resize(group.size() - end.size());
    return part;
  }
  return {};
}

/// Replaces the class and the config of a TimeDistributed by those of its inner layer, which has the weights.
/// Without the model's configuration, the class is derived from `wrapped`, the name of the inner layer, which
/// usually is Keras's default name for the class.
void unwrap(NamedLayer& layer, const std::string& wrapped) {
  if (const Json* const inner = value_at(layer.config, "layer")) {
    layer.class_name = keras_snake_case(text_at(*inner, "class_name"));
    const Json* const config = value_at(*inner, "config");
    layer.config = config ? Json(*config) : Json();
  } else {
    layer.class_name = without_number(wrapped);
  }
}

/// Splits the name of a weight in Keras into parts: "dense_1/kernel:0" gives "dense_1" and "kernel".
std::vector<std::string> parts_of_name(std::string_view name) {
  name = name.substr(0, name.rfind(':') == std::string_view::npos ? name.size() : name.rfind(':'));
  std::vector<std::string> parts;
  while (true) {
    const size_t slash = name.find('/');
    parts.emplace_back(name.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    name.remove_prefix(slash + 1);
  }
}

/// Joins the last `count` parts. If there are fewer parts, joins all of them.
std::string end_of_name(const std::vector<std::string>& parts, size_t count) {
  const size_t first = parts.size() - std::min(count, parts.size());
  return fmt::format("{}", fmt::join(parts.begin() + static_cast<ptrdiff_t>(first), parts.end(), "/"));
}

/// Shortens the names of a group's weights. Each name keeps as many of its last parts as are needed to
/// distinguish it from the other names.
std::vector<std::string> short_names(const std::vector<std::string>& names) {
  constexpr size_t kMostParts = 8;  // enough for nested models; longer names are not shortened
  std::vector<std::vector<std::string>> parts;
  for (const std::string& name : names) parts.push_back(parts_of_name(name));
  std::vector<size_t> counts(names.size(), 1);
  for (size_t count = 1; count <= kMostParts; ++count) {
    std::map<std::string, int> ends;
    for (const auto& one : parts) ++ends[end_of_name(one, count)];
    for (size_t i = 0; i < names.size(); ++i)
      if (counts[i] == count && ends[end_of_name(parts[i], count)] > 1)
        counts[i] = count < kMostParts ? count + 1 : parts[i].size();
  }
  std::vector<std::string> chosen;
  for (size_t i = 0; i < names.size(); ++i) chosen.push_back(end_of_name(parts[i], counts[i]));
  return chosen;
}

/// Returns the direction of a bidirectional layer to which the weight belongs: "forward_" or "backward_".
/// Returns "" for weights of other layers. The weight's name in Keras contains the direction, as in
/// "forward_lstm".
std::string direction_of(const std::string& name) {
  const std::vector<std::string> parts = parts_of_name(name);
  for (size_t i = 0; i + 1 < parts.size(); ++i)
    for (const char* direction : {"forward_", "backward_"})
      if (parts[i].starts_with(direction)) return direction;
  return "";
}

bool is_bidirectional(const std::vector<std::string>& names) {
  const auto has = [&](const char* direction) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return direction_of(name) == direction; });
  };
  return has("forward_") && has("backward_") && !has("");
}

/// Returns the names that the weights of a bidirectional layer have in dtrain, such as "forward_kernel".
std::vector<std::string> names_by_direction(const std::vector<std::string>& names) {
  std::vector<std::string> named;
  for (const std::string& name : names) named.push_back(direction_of(name) + parts_of_name(name).back());
  return named;
}

/// Returns the names of each group's weights, for files with KerasLayout::layers.
std::vector<Names> names_of_groups(const std::vector<KerasWeightGroup>& groups) {
  std::vector<std::vector<std::string>> all;
  for (const KerasWeightGroup& group : groups) {
    std::vector<std::string> names;
    for (const KerasWeight& weight : group.weights) names.push_back(weight.name);
    names = is_bidirectional(names) ? names_by_direction(names) : short_names(names);
    for (std::string& name : names) name = group.name + "/" + name;
    all.push_back(std::move(names));
  }
  return all;
}

}  // namespace

std::vector<Names> names_of_vars(const std::vector<KerasWeightGroup>& groups, const Json& model_config) {
  std::map<std::string, NamedLayer> layers;
  if (!model_config.is_null()) add_layers(*parse_keras_model(model_config), "", "", layers);
  std::vector<Names> all;
  for (const KerasWeightGroup& written : groups) {
    KerasWeightGroup group = written;
    const KerasLayerPart part = take_part(group.name);
    int wrappers = 0;
    for (; group.name.ends_with(kKerasWrappedLayer); ++wrappers)
      group.name.resize(group.name.size() - kKerasWrappedLayer.size());
    const auto found = layers.find(group.name);
    NamedLayer layer = found == layers.end() ? layer_of_path(group) : found->second;
    for (int i = 0; i < wrappers; ++i) unwrap(layer, group.wrapped);
    const std::string_view class_name =
        part.class_name.empty() ? std::string_view(layer.class_name) : part.class_name;
    Names names = weight_names_of(class_name, layer.config, group.weights.size());
    for (std::string& name : names)
      name = fmt::format("{}/{}{}{}", layer.name, layer.prefix, part.prefix, name);
    all.push_back(std::move(names));
  }
  return all;
}

std::vector<Names> names_of_weights(const std::vector<KerasWeightGroup>& groups, KerasLayout layout,
                                    const Json& model_config) {
  return layout == KerasLayout::vars ? names_of_vars(groups, model_config) : names_of_groups(groups);
}

}  // namespace dtrain
