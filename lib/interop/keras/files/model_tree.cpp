#include "interop/keras/files/model_tree.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "interop/keras/files/json.h"
#include "interop/keras/files/restored_layers.h"

namespace dtrain {

namespace {

bool is_model_class(std::string_view name) {
  constexpr std::array kModels{"Functional", "Model", "Sequential", "Network"};
  return std::find(kModels.begin(), kModels.end(), name) != kModels.end();
}

/// Parses the layers and calls of one model. Models within this model are parsed separately.
class ModelParser {
 public:
  explicit ModelParser(std::string where) : where_(std::move(where)) {}

  KerasModel parse(const Json& model) {
    const std::string class_name = text_at(model, "class_name");
    const Json* config = value_at(model, "config");
    if (!config) refuse("a model with a class_name and a config", "no config");
    if (!is_model_class(class_name) && !value_at(*config, "layers"))
      throw UserError(
          fmt::format("{}: expected a Sequential or functional model, but the model's class is '{}', which "
                      "is implemented in Python; the file does not contain its layers",
                      where_, class_name));
    result_.name = text_at(*config, "name");
    const Json* layers = config->is_array() ? config : value_at(*config, "layers");
    if (!layers || !layers->is_array()) refuse("a list of layers", "none");
    const bool is_sequential = class_name == "Sequential";
    for (const Json& layer : layers->items()) add_layer(layer, is_sequential);
    if (is_sequential) {
      chain(*config);
    } else {
      for (size_t i = 0; i < layers->items().size(); ++i) add_calls(i, layers->items()[i]);
      if (const Json* inputs = value_at(*config, "input_layers")) add_inputs_of_model(*inputs);
      if (const Json* outputs = value_at(*config, "output_layers")) add_tensors(*outputs, result_.outputs);
      if (result_.outputs.empty()) refuse("output_layers", "none");
      number_calls_from_zero();
    }
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(const std::string& expected, const std::string& found) const {
    throw UserError(fmt::format("{}: expected {}, found {}", where_, expected, found));
  }

  void add_layer(const Json& written, bool is_sequential) {
    KerasModelLayer layer;
    layer.class_name = text_at(written, "class_name");
    if (const Json* config = value_at(written, "config")) layer.config = *config;
    layer.name = text_at(written, "name");
    if (layer.name.empty()) layer.name = text_at(layer.config, "name");
    if (layer.name.empty() && is_sequential)
      layer.name = fmt::format("{}_{}", layer.class_name, result_.layers.size());
    if (layer.class_name.empty() || layer.name.empty())
      refuse("a layer's class_name and name", written.dump());
    if (const Json* trainable = value_at(layer.config, "trainable"); trainable && trainable->is_bool())
      layer.trainable = trainable->as_bool();
    if (!numbers_.emplace(layer.name, static_cast<int>(result_.layers.size())).second)
      refuse("layers with different names", fmt::format("two called '{}'", layer.name));
    if (is_model_class(layer.class_name) || value_at(layer.config, "layers"))
      layer.model = std::make_shared<const KerasModel>(
          ModelParser(fmt::format("{}/{}", where_, layer.name)).parse(written));
    restore_layer(layer);
    result_.layers.push_back(std::move(layer));
  }

  /// Adds one call to each layer of a Sequential. If the first layer is not an InputLayer, inserts one before
  /// it.
  void chain(const Json& config) {
    if (result_.layers.empty()) refuse("at least one layer", "none");
    if (!result_.layers.front().is_input()) {
      const KerasModelLayer& first = result_.layers.front();
      KerasModelLayer input;
      input.name = first.name + "_input";
      input.class_name = "InputLayer";
      input.config = Json::object().set("name", input.name);
      for (const char* key : {"batch_input_shape", "batch_shape"})
        if (const Json* shape = value_at(first.config, key)) input.config.set("batch_shape", *shape);
      const Json* build = value_at(config, "build_input_shape");
      if (!input.config.find("batch_shape") && build) input.config.set("batch_shape", *build);
      if (!input.config.find("batch_shape") && first.model && !first.model->inputs.empty()) {
        const auto& inner = first.model->layers[static_cast<size_t>(first.model->inputs.front().layer)];
        for (const char* key : {"batch_input_shape", "batch_shape"})
          if (const Json* shape = value_at(inner.config, key)) input.config.set("batch_shape", *shape);
      }
      if (const std::string dtype = text_at(first.config, "dtype"); !dtype.empty())
        input.config.set("dtype", dtype);
      result_.layers.insert(result_.layers.begin(), std::move(input));
    }
    for (size_t i = 1; i < result_.layers.size(); ++i)
      result_.layers[i].calls.push_back({{{static_cast<int>(i) - 1, 0, 0}}, Json::object()});
    result_.inputs = {{0, 0, 0}};
    result_.outputs = {{static_cast<int>(result_.layers.size()) - 1, 0, 0}};
  }

  int number_of(const std::string& name) const {
    const auto found = numbers_.find(name);
    if (found == numbers_.end()) refuse("names of layers", fmt::format("'{}', which is not a layer", name));
    return found->second;
  }

  static std::optional<int> small_number(const Json& json) {
    constexpr int64_t kMost = 1'000'000;
    if (!json.is_int() || json.as_int() < 0 || json.as_int() > kMost) return std::nullopt;
    return static_cast<int>(json.as_int());
  }

  /// Parses [layer, call, output] or [layer, call, output, arguments]; returns nullopt for other JSON.
  std::optional<KerasTensor> tensor_of(const Json& json) const {
    if (!json.is_array() || json.items().size() < 3 || !json.items()[0].is_string()) return std::nullopt;
    const auto call = small_number(json.items()[1]), output = small_number(json.items()[2]);
    if (!call || !output) return std::nullopt;
    return KerasTensor{number_of(json.items()[0].as_string()), *call, *output};
  }

  /// Returns true for a mapping from keys to values, and false for Keras 3's tensor objects.
  static bool is_mapping(const Json& json) {
    const Json* config = json.is_object() ? value_at(json, "config") : nullptr;
    return json.is_object() && !(config && value_at(*config, "keras_history"));
  }

  static std::vector<std::string> sorted_keys(const Json& mapping) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : mapping.entries()) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    return keys;
  }

  void add_inputs_of_model(const Json& json) {
    add_tensors(json, result_.inputs);
    if (is_mapping(json)) {
      result_.input_keys = sorted_keys(json);
    } else {
      for (const KerasTensor& input : result_.inputs)
        result_.input_keys.push_back(result_.layers[static_cast<size_t>(input.layer)].name);
    }
  }

  /// Adds the tensors that a call passes to a layer. If a model is called with a mapping, Keras assigns the
  /// tensors to the inputs by their keys.
  void add_inputs(const KerasModelLayer& layer, const Json& json, std::vector<KerasTensor>& tensors) const {
    if (!layer.model || layer.model->input_keys.empty() || !is_mapping(json))
      return add_tensors(json, tensors);
    for (const std::string& key : layer.model->input_keys) {
      const Json* const value = json.find(key);
      if (!value) refuse(fmt::format("the input '{}' in a call of '{}'", key, layer.name), "no such key");
      add_tensors(*value, tensors);
    }
  }

  /// Adds the tensors in a structure of lists and mappings. The tensors are references or Keras 3's tensor
  /// objects. Like Keras, visits the keys of a mapping in sorted order.
  void add_tensors(const Json& json, std::vector<KerasTensor>& tensors) const {
    if (const auto tensor = tensor_of(json)) {
      tensors.push_back(*tensor);
    } else if (json.is_array()) {
      for (const Json& item : json.items()) add_tensors(item, tensors);
    } else if (json.is_object()) {
      if (!is_mapping(json))
        return add_tensors(*value_at(*value_at(json, "config"), "keras_history"), tensors);
      for (const std::string& key : sorted_keys(json)) add_tensors(*json.find(key), tensors);
    }
  }

  std::vector<KerasTensor> tensors_in(const Json& json) const {
    std::vector<KerasTensor> tensors;
    add_tensors(json, tensors);
    return tensors;
  }

  /// Adds the masks of a keyword argument: one mask, or one for each input. Returns whether the argument has
  /// masks.
  bool add_masks(const std::string& key, const Json& value, KerasCall& call) const {
    constexpr std::array<std::string_view, 3> kOfAttention{"query_mask", "value_mask", "key_mask"};
    const auto of_attention = std::find(kOfAttention.begin(), kOfAttention.end(), key);
    if (key != "mask" && of_attention == kOfAttention.end()) return false;
    const std::vector<KerasTensor> all = tensors_in(value);
    const bool is_list = value.is_array() && !tensor_of(value);
    const auto add = [&](size_t input, const std::vector<KerasTensor>& tensors) {
      for (const KerasTensor& tensor : tensors) call.masks.push_back({input, tensor});
    };
    if (!is_list) add(key == "mask" ? 0 : static_cast<size_t>(of_attention - kOfAttention.begin()), all);
    if (is_list)
      for (size_t i = 0; i < value.items().size(); ++i) add(i, tensors_in(value.items()[i]));
    return !all.empty();
  }

  /// Returns true for null, and for a list or mapping that contains only nulls. For example, Keras 3 writes
  /// `mask: [null, null]` for the call of a model with two inputs without masks.
  static bool is_absent(const Json& value) {
    if (value.is_array()) return std::all_of(value.items().begin(), value.items().end(), is_absent);
    if (value.is_object())
      return std::all_of(value.entries().begin(), value.entries().end(),
                         [](const auto& entry) { return is_absent(entry.second); });
    return value.is_null();
  }

  /// Adds the keyword arguments of a call that are not null.
  void add_arguments(const KerasModelLayer& layer, const Json& written, KerasCall& call) const {
    if (!written.is_object()) return;
    // The keyword arguments that are inputs. Every layer has its positional arguments in this order.
    constexpr std::array kInputs{"inputs", "sequences", "query", "value", "key", "initial_state"};
    for (const char* key : kInputs)
      if (const Json* const value = value_at(written, key)) add_inputs(layer, *value, call.inputs);
    for (const auto& [key, value] : written.entries()) {
      const bool is_input = std::find(kInputs.begin(), kInputs.end(), key) != kInputs.end();
      if (is_absent(value) || (is_input && !tensors_in(value).empty()) || add_masks(key, value, call))
        continue;
      call.arguments.set(key, value);
    }
  }

  /// Adds the positional arguments of a call in the Keras 3 format.
  void add_positional(const KerasModelLayer& layer, const Json& written, KerasCall& call) const {
    if (!written.is_array()) return add_inputs(layer, written, call.inputs);
    for (const Json& argument : written.items()) {
      const size_t before = call.inputs.size();
      add_inputs(layer, argument, call.inputs);
      if (call.inputs.size() == before && !argument.is_null()) call.constants.push_back(argument);
    }
  }

  void add_calls(size_t number, const Json& written) {
    KerasModelLayer& layer = result_.layers[number];
    const Json* nodes = value_at(written, "inbound_nodes");
    if (!nodes || layer.is_input()) return;
    if (!nodes->is_array()) refuse("a list of inbound_nodes", nodes->dump());
    for (const Json& node : nodes->items()) {
      KerasCall call{{}, Json::object()};
      if (const Json* args = value_at(node, "args")) {  // Keras 3
        is_keras_3_ = true;
        add_positional(layer, *args, call);
        if (const Json* keywords = value_at(node, "kwargs")) add_arguments(layer, *keywords, call);
      } else {
        add_inputs(layer, node, call.inputs);
        const bool is_list = node.is_array() && !node.items().empty() && !node.items()[0].is_string();
        // Every tensor of the list repeats the keyword arguments of the call.
        const Json& tensor = is_list ? node.items()[0] : node;
        if (tensor.is_array() && tensor.items().size() > 3) add_arguments(layer, tensor.items()[3], call);
      }
      layer.calls.push_back(std::move(call));
    }
  }

  /// Returns whether a layer is a model within the model, other than a Sequential.
  static bool is_functional(const KerasModelLayer& layer) {
    return layer.file_class() == kKerasModel || (layer.model && layer.class_name != "Sequential");
  }

  /// Renumbers calls from 0. Keras 2 may count the calls of a model within the model from 1, because the
  /// creation of that model counts as a call. Keras 3 counts from 1 only in the lists of the outer model's
  /// inputs and outputs.
  void number_calls_from_zero() {
    if (is_keras_3_)
      for (KerasTensor& output : result_.outputs)
        if (is_functional(result_.layers[static_cast<size_t>(output.layer)]))
          output.call = std::max(0, output.call - 1);
    std::vector<int> largest(result_.layers.size(), -1);
    const auto for_each_tensor = [&](const auto& work) {
      for (KerasModelLayer& layer : result_.layers)
        for (KerasCall& call : layer.calls) {
          for (KerasTensor& tensor : call.inputs) work(tensor);
          for (KerasMaskArgument& mask : call.masks) work(mask.tensor);
        }
      for (auto* ends : {&result_.inputs, &result_.outputs})
        for (KerasTensor& tensor : *ends) work(tensor);
    };
    for_each_tensor([&](const KerasTensor& tensor) {
      int& most = largest[static_cast<size_t>(tensor.layer)];
      most = std::max(most, tensor.call);
    });
    for_each_tensor([&](KerasTensor& tensor) {
      const KerasModelLayer& layer = result_.layers[static_cast<size_t>(tensor.layer)];
      const int calls = std::max(1, static_cast<int>(layer.calls.size()));
      const int surplus = std::max(0, largest[static_cast<size_t>(tensor.layer)] - (calls - 1));
      tensor.call -= surplus;
      if (tensor.call < 0 || (layer.calls.empty() && !layer.is_input()))
        refuse(fmt::format("a reference to an existing call of '{}'", layer.name),
               "a reference to a call that the file does not contain");
    });
  }

  std::string where_;
  KerasModel result_;
  std::map<std::string, int> numbers_;
  bool is_keras_3_ = false;  // whether the calls are in the Keras 3 format
};

}  // namespace

std::shared_ptr<const KerasModel> parse_keras_model(const Json& model_config) {
  const Json* config = value_at(model_config, "config");
  const std::string name = config ? text_at(*config, "name") : "";
  return std::make_shared<const KerasModel>(
      ModelParser(name.empty() ? "the model" : fmt::format("the model '{}'", name)).parse(model_config));
}

}  // namespace dtrain
