#include "interop/keras/import/model.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "interop/keras/files/json.h"
#include "interop/keras/import/data_format.h"
#include "interop/keras/import/layer_reader.h"
#include "interop/keras/import/masks.h"
#include "interop/keras/import/model_calls.h"
#include "interop/layer_formats.h"

namespace dtrain {

namespace {

using Value = KerasValue;
using Call = KerasLayerCall;

/// Converts a Keras name to a valid name of a dtrain layer: replaces invalid characters by '_'.
std::string allowed_name(const std::string& name) {
  std::string allowed;
  for (const char c : name) {
    const bool is_first = allowed.empty() || allowed.back() == '/';
    const bool is_kept =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || ((c == '.' || c == '-') && !is_first);
    if (c == '/' && is_first) continue;
    allowed += is_kept || c == '/' ? c : '_';
  }
  while (!allowed.empty() && allowed.back() == '/') allowed.pop_back();
  constexpr size_t kLongest = 180;
  if (allowed.size() > kLongest) allowed.resize(kLongest);
  return allowed.empty() ? "layer" : allowed;
}

/// Returns the options of a layer without those that have default values. The order is the order in
/// docs/reference.md.
ConfigNode without_defaults(const std::string& kind, const ConfigNode& options) {
  const ConfigNode name = ConfigNode::scalar(kind);
  const auto resolved = [&](const ConfigNode& some) {
    Diagnostics mistakes;
    const Configured<Layer> layer = registry<Layer>().parse(name, some, mistakes);
    return mistakes.count() == 0 && layer ? layer.resolved.to_yaml() : std::string();
  };
  const std::string whole = resolved(options);
  ConfigNode shorter = options;
  if (whole.empty()) return shorter;
  for (const auto& [key, value] : options.entries()) {
    const std::string_view one[] = {key.text()};
    const ConfigNode less = shorter.without(one);
    if (resolved(less) == whole) shorter = less;
    if (!value.is_mapping()) continue;
    const ConfigNode bare = shorter.with(key.text(), ConfigNode::mapping({}));
    if (shorter.find(key.text()) && resolved(bare) == whole) shorter = bare;
  }
  std::vector<ConfigNode::Entry> ordered;
  for (const std::string& field : registry<Layer>().fields(kind))
    if (const ConfigNode* value = shorter.find(field)) ordered.push_back(ConfigNode::entry(field, *value));
  return ConfigNode::mapping(std::move(ordered));
}

/// Returns true if Keras computes the layer's activation along the last spatial axis. dtrain would compute it
/// along the channels, because it moves them to the end.
bool normalizes_spatial_axis(const KerasModelLayer& layer, const ConfigNode& options) {
  const ConfigNode* const activation = options.is_mapping() ? options.find("activation") : nullptr;
  return has_channels_first(layer) && activation && !activation->is_mapping() &&
         activation->text().ends_with("softmax");
}

class Importer {
 public:
  Importer(const KerasModel& model, int keras_major) : model_(model), keras_major_(keras_major) {}

  ImportedModel import() {
    name_inputs();
    const KerasCalls listed = list_calls(model_);
    calls_ = listed.calls;
    problems_ = listed.problems;
    drop_unread(listed.outputs);
    translate();
    if (problems_.empty()) find_masks(listed);
    if (!problems_.empty()) throw_problems();
    write(listed.outputs);
    return std::move(result_);
  }

 private:
  [[noreturn]] void throw_problems() const {
    throw UserError(fmt::format("dtrain cannot express {} of this model:\n  {}",
                                problems_.size() == 1 ? "a layer" : "some layers",
                                fmt::join(problems_, "\n  ")));
  }

  void name_inputs() {
    for (const KerasTensor& input : model_.inputs)
      input_names_.push_back(unique_name(allowed_name(model_.layers[static_cast<size_t>(input.layer)].name)));
  }

  std::string unique_name(const std::string& base) {
    std::string name = base;
    for (int number = 1; !taken_.insert(name).second; ++number) name = fmt::format("{}_{}", base, number);
    return name;
  }

  void drop_unread(const std::vector<Value>& outputs) {
    is_read_.assign(calls_.size(), false);
    for (const Value& output : outputs)
      if (output.call >= 0) is_read_[static_cast<size_t>(output.call)] = true;
    for (size_t i = calls_.size(); i-- > 0;)
      if (is_read_[i])
        for (const Value& input : calls_[i].inputs)
          if (input.call >= 0) is_read_[static_cast<size_t>(input.call)] = true;
  }

  /// Converts the options of each called layer once.
  void translate() {
    for (size_t i = 0; i < calls_.size(); ++i) {
      const Call& call = calls_[i];
      if (!is_read_[i]) continue;
      if (const auto [first, is_new] = causal_.emplace(call.layer, call.is_causal);
          !is_new && first->second != call.is_causal)
        problems_.push_back(
            fmt::format("{}: only some of its calls have use_causal_mask, but in dtrain, this is an option "
                        "of the layer and applies to all calls",
                        call.path));
      if (written_.contains(call.layer)) continue;
      written_[call.layer] = {};
      if (call.is_reverse)
        problems_.push_back(fmt::format(
            "{}: its first call has reverse=true, but in dtrain, the first call must not be reversed",
            call.path));
      const LayerFormats* row = formats_of_keras_class(call.layer->class_name);
      if (!row || !row->from_keras) {
        problems_.push_back(describe_unknown(call));
        continue;
      }
      Json config = call.layer->config;
      // use_causal_mask is an argument of the call in Keras, but an option of the layer in dtrain
      if (call.is_causal) config.set("causal", true);
      KerasLayerReader reader(call.layer->class_name, config, keras_major_);
      const ConfigNode options = row->from_keras(reader);
      const ConfigNode regularizer = reader.activity_regularizer();
      for (const std::string& problem : reader.problems())
        problems_.push_back(fmt::format("{} ({}): {}", call.path, call.layer->class_name, problem));
      for (const std::string& setting : reader.left_out())
        result_.left_out.push_back(fmt::format("{}: {}", call.path, setting));
      if (normalizes_spatial_axis(*call.layer, options))
        problems_.push_back(
            fmt::format("{} ({}): has channels first and the activation {}, which Keras computes along the "
                        "last spatial axis; use a separate Softmax layer",
                        call.path, call.layer->class_name, options.find("activation")->text()));
      if (!reader.problems().empty()) continue;
      Diagnostics mistakes;
      const Configured<Layer> layer =
          registry<Layer>().parse(ConfigNode::scalar(row->kind), options, mistakes);
      for (const Diagnostics::Item& mistake : mistakes.items())
        problems_.push_back(fmt::format("{} ({}): {}", call.path, call.layer->class_name, mistake.message));
      if (mistakes.count() > 0) continue;
      written_[call.layer] = {row->kind, without_defaults(row->kind, options)};
      if (regularizer.is_null()) continue;
      if (layer->can_penalize_output())
        activity_regularizers_[call.layer] = regularizer;
      else
        result_.left_out.push_back(fmt::format("{}: activity_regularizer", call.path));
    }
  }

  /// Removes `mask_zero` from embeddings whose masks no layer reads. Also finds the layers that need
  /// `ignore_mask`.
  void find_masks(const KerasCalls& listed) {
    KerasMasks masks = follow_masks(listed, is_read_, keras_major_, [this](const Call& call) {
      const auto& [kind, options] = written_[call.layer];
      Diagnostics mistakes;
      return registry<Layer>().parse(ConfigNode::scalar(kind), options, mistakes).value->mask_rule();
    });
    problems_ = std::move(masks.problems);
    ignores_mask_ = std::move(masks.ignores);
    std::set<const KerasModelLayer*> used;
    for (size_t i = 0; i < calls_.size(); ++i)
      if (masks.is_used[i]) used.insert(calls_[i].layer);
    for (const Call& call : calls_) {
      ConfigNode& options = written_[call.layer].second;
      if (used.contains(call.layer) || !options.is_mapping() || !options.find("mask_zero")) continue;
      const std::string_view keys[] = {"mask_zero"};
      options = options.without(keys);
      result_.left_out.push_back(fmt::format("{}: mask_zero, because no layer reads the mask", call.path));
    }
  }

  static std::string describe_unknown(const Call& call) {
    if (call.layer->class_name == "Lambda")
      return fmt::format("{} (Lambda): is Python code; build the model in Keras without it", call.path);
    return fmt::format("{}: dtrain has no layer {}", call.path, call.layer->class_name);
  }

  /// The order of a value's axes. `as_in_file` is the order in the Keras file. `channels_last` is used for
  /// images that have channels first in the file: their channel axis is moved to the end.
  enum class Axes { as_in_file, channels_last };

  /// The names under which a value exists in each order of axes; "" if it does not exist in this order.
  struct ValueNames {
    std::string as_in_file, channels_last;
    // True if the value is a volume, with three spatial axes. Only set if the value exists with channels
    // last.
    bool is_volume = false;
  };

  ValueNames& names_of(const Value& value) {
    return value.call < 0 ? input_values_[static_cast<size_t>(value.input)]
                          : call_values_[static_cast<size_t>(value.call)];
  }

  /// Returns the name of a value in this order of axes. If the value does not exist in this order yet, adds a
  /// permute layer that converts it.
  std::string read(const Value& value, Axes axes) {
    ValueNames& names = names_of(value);
    // Outputs after the first one are states, which have no channel axis.
    if (value.output > 0) return fmt::format("{}:{}", names.as_in_file, value.output);
    const bool wants_last = axes == Axes::channels_last;
    std::string& wanted = wants_last ? names.channels_last : names.as_in_file;
    const std::string& other = wants_last ? names.as_in_file : names.channels_last;
    if (!wanted.empty()) return wanted;
    const std::vector<const char*> last =
        names.is_volume ? std::vector{"2", "3", "4", "1"} : std::vector{"2", "3", "1"};
    const std::vector<const char*> first =
        names.is_volume ? std::vector{"4", "1", "2", "3"} : std::vector{"3", "1", "2"};
    std::vector<ConfigNode> dims;
    for (const char* dim : wants_last ? last : first) dims.push_back(ConfigNode::scalar(dim));
    const std::string name = unique_name(other + (wants_last ? "_channels_last" : "_channels_first"));
    add_layer("permute", ConfigNode::mapping({ConfigNode::entry("dims", ConfigNode::sequence(dims))}), name,
              {other});
    return wanted = name;
  }

  /// Returns true if the call reads volumes. The inputs of the call must have channels last.
  bool reads_volumes(const Call& call) {
    const std::string& name = call.layer->class_name;
    return name.ends_with("3D") ||
           (!name.ends_with("2D") &&
            std::any_of(call.inputs.begin(), call.inputs.end(),
                        [&](const Value& input) { return names_of(input).is_volume; }));
  }

  /// Returns the shape of an input of the model, with the batch axis; nullptr if the file does not contain
  /// it.
  const Json* shape_of(size_t input) const {
    const KerasModelLayer& layer = model_.layers[static_cast<size_t>(model_.inputs[input].layer)];
    const Json* const shape = value_at(layer.config, "batch_shape");
    return shape ? shape : value_at(layer.config, "batch_input_shape");
  }

  /// Returns true if a value is a model input and, like an image, has three axes.
  bool is_image_input(const Value& value) const {
    const Json* const shape = value.call < 0 ? shape_of(static_cast<size_t>(value.input)) : nullptr;
    return shape && shape->is_array() && shape->items().size() == 4;
  }

  Axes axes_of(const Call& call) {
    const KerasModelLayer& layer = *call.layer;
    if (has_channels_first(layer)) return Axes::channels_last;
    const bool is_prelu = layer.class_name == "PReLU";
    // All calls of a layer share its weights. The first call determines the order of the axes of these
    // weights.
    if (is_prelu && result_.names.contains(&layer))
      return result_.moved_channels.contains(&layer) ? Axes::channels_last : Axes::as_in_file;
    const bool has_last = std::any_of(call.inputs.begin(), call.inputs.end(), [&](const Value& input) {
      return !names_of(input).channels_last.empty();
    });
    const bool is_norm =
        layer.class_name == "GroupNormalization" || layer.class_name.starts_with("BatchNormalization");
    const bool reads_image = is_norm && is_along_first_axis(layer) && is_image_input(call.inputs[0]);
    if (!has_last && !reads_image) return Axes::as_in_file;
    const bool moves =
        is_prelu || (is_along_first_axis(layer) && (is_norm || layer.class_name == "Concatenate"));
    if (moves) result_.moved_channels.insert(&layer);
    return moves || is_elementwise(layer) ? Axes::channels_last : Axes::as_in_file;
  }

  void add_layer(const std::string& kind, ConfigNode options, const std::string& name,
                 const std::vector<std::string>& inputs) {
    options = options.with("name", ConfigNode::scalar(name));
    if (inputs != std::vector{above_}) options = options.with("inputs", names_node(inputs));
    layers_.push_back(ConfigNode::mapping({ConfigNode::entry(kind, options)}));
    above_ = name;
  }

  void write_call(size_t number) {
    const Call& call = calls_[number];
    const auto& [layer_kind, own_options] = written_[call.layer];
    // The reversed call of an embedding is a dense layer that shares the embedding's weights.
    const std::string kind = call.is_reverse ? "dense" : layer_kind;
    const Axes axes = axes_of(call);
    const bool is_volume = axes == Axes::channels_last && reads_volumes(call);
    if (axes == Axes::channels_last)
      for (const Value& input : call.inputs) names_of(input).is_volume = is_volume;
    std::vector<std::string> inputs;
    for (const Value& input : call.inputs) inputs.push_back(read(input, axes));
    // Keras calls attention with [query, value] or [query, value, key]. In dtrain, the last inputs are left
    // out if they equal the input before them.
    if (kind == "multi_head_attention")
      while (inputs.size() > 1 && inputs[inputs.size() - 1] == inputs[inputs.size() - 2]) inputs.pop_back();
    const auto [first, is_first] = result_.names.emplace(call.layer, "");
    const std::string name =
        unique_name(allowed_name(is_first ? call.path : fmt::format("{}_again", call.path)));
    if (is_first) first->second = name;
    const bool shares = !is_first && kind_has_weights(kind);
    ConfigNode options = shares ? ConfigNode::mapping({}) : own_options;
    if (kind == "concatenate" && axes == Axes::channels_last)
      options = options.with("axis", ConfigNode::scalar("-1"));
    if (kind == "prelu" && axes == Axes::channels_last) options = with_channels_last(options, is_volume);
    if (shares) options = options.with("shared_with", ConfigNode::scalar(first->second));
    if (is_first && !call.layer->trainable && kind_has_weights(kind))
      options = options.with("trainable", ConfigNode::scalar("false"));
    const auto regularizer = activity_regularizers_.find(call.layer);
    if (regularizer != activity_regularizers_.end() && !shares && kind == layer_kind)
      options = options.with("activity_regularizer", regularizer->second);
    if (ignores_mask_[number]) options = options.with("ignore_mask", ConfigNode::scalar("true"));
    add_layer(kind, options, name, inputs);
    const bool is_image = axes == Axes::channels_last && gives_image(*call.layer);
    (is_image ? call_values_[number].channels_last : call_values_[number].as_in_file) = name;
    call_values_[number].is_volume = is_volume;
  }

  void write(const std::vector<Value>& outputs) {
    for (const std::string& name : input_names_) input_values_.push_back({name, "", false});
    call_values_.resize(calls_.size());
    above_ = input_names_.size() == 1 ? input_names_.front() : "";
    for (size_t i = 0; i < calls_.size(); ++i)
      if (is_read_[i]) write_call(i);
    std::vector<std::string> names;
    for (const Value& output : outputs) names.push_back(read(output, Axes::as_in_file));
    std::vector<ConfigNode::Entry> entries{ConfigNode::entry("inputs", write_inputs()),
                                           ConfigNode::entry("layers", ConfigNode::sequence(layers_))};
    if (names != std::vector{above_}) entries.push_back(ConfigNode::entry("outputs", names_node(names)));
    result_.model = ConfigNode::mapping(std::move(entries));
  }

  static ConfigNode names_node(const std::vector<std::string>& names) {
    if (names.size() == 1) return ConfigNode::scalar(names.front());
    std::vector<ConfigNode> items;
    for (const std::string& name : names) items.push_back(ConfigNode::scalar(name));
    return ConfigNode::sequence(std::move(items));
  }

  /// Returns true if all layers that read this input expect indices. The input is then an integer input in
  /// dtrain, although its dtype in Keras 2 may be float32.
  bool is_of_indices(int input) const {
    bool found = false;
    for (size_t i = 0; i < calls_.size(); ++i)
      for (const Value& value : calls_[i].inputs)
        if (is_read_[i] && value.call < 0 && value.input == input) {
          const std::string& reader = calls_[i].layer->class_name;
          if (reader != "Embedding" && reader != kKerasReversibleEmbedding) return false;
          found = true;
        }
    return found;
  }

  /// Returns true if an embedding reads this input, or values that are computed from this input.
  bool feeds_embedding(int input) const {
    std::vector<bool> depends(calls_.size(), false);  // indexed by call
    for (size_t i = 0; i < calls_.size(); ++i) {
      const Call& call = calls_[i];
      depends[i] =
          is_read_[i] && std::any_of(call.inputs.begin(), call.inputs.end(), [&](const Value& value) {
            return value.call < 0 ? value.input == input : depends[static_cast<size_t>(value.call)];
          });
      const std::string& reader = call.layer->class_name;
      if (depends[i] && (reader == "Embedding" || reader == kKerasReversibleEmbedding)) return true;
    }
    return false;
  }

  ConfigNode write_inputs() {
    std::vector<ConfigNode::Entry> inputs;
    for (size_t i = 0; i < model_.inputs.size(); ++i) {
      const KerasModelLayer& layer = model_.layers[static_cast<size_t>(model_.inputs[i].layer)];
      const Json* const shape = shape_of(i);
      ConfigNode extents;  // shape of the input; null if the file does not contain it
      if (shape && shape->is_array() && !shape->items().empty()) {
        std::vector<ConfigNode> items;
        for (size_t axis = 1; axis < shape->items().size(); ++axis)
          items.push_back(config_of_json(shape->items()[axis]));
        extents = ConfigNode::sequence(std::move(items));
      }
      const std::string dtype = text_at(layer.config, "dtype");
      const bool is_integer = dtype.starts_with("int") || dtype.starts_with("uint");
      const bool needs_integers = is_integer && feeds_embedding(static_cast<int>(i));
      if (is_integer && !needs_integers)
        result_.left_out.push_back(
            fmt::format("{}: dtype {}, because no Embedding reads the input", input_names_[i], dtype));
      if (needs_integers || is_of_indices(static_cast<int>(i)))
        extents = ConfigNode::mapping(
            {ConfigNode::entry("shape", extents), ConfigNode::entry("dtype", ConfigNode::scalar("int32"))});
      inputs.push_back(ConfigNode::entry(input_names_[i], extents));
    }
    return ConfigNode::mapping(std::move(inputs));
  }

  const KerasModel& model_;
  int keras_major_;
  ImportedModel result_;
  std::vector<Call> calls_;
  std::vector<bool> is_read_, ignores_mask_;  // indexed by call
  std::vector<std::string> input_names_, problems_;
  std::vector<ValueNames> input_values_, call_values_;
  std::vector<ConfigNode> layers_;  // layers of the written model
  std::string above_;               // name of the last layer in `layers_`
  std::set<std::string> taken_;
  // Kind and options of the converted layers.
  std::map<const KerasModelLayer*, std::pair<std::string, ConfigNode>> written_;
  std::map<const KerasModelLayer*, ConfigNode> activity_regularizers_;
  std::map<const KerasModelLayer*, bool> causal_;  // KerasLayerCall::is_causal
};

}  // namespace

ImportedModel import_keras_model(const KerasModel& model, int keras_major) {
  return Importer(model, keras_major).import();
}

}  // namespace dtrain
