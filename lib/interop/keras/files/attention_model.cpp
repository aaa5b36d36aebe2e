#include "interop/keras/files/attention_model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "interop/keras/files/attention_layers.h"
#include "interop/keras/files/inner_model.h"
#include "interop/keras/files/json.h"

namespace dtrain {

namespace {

/// Returns whether two JSON values are equal, except for the rounding of numbers.
bool has_same_numbers(const Json& a, const Json& b) {
  constexpr double kRounding = 1e-12;
  if (a.is_number() && b.is_number())
    return std::abs(a.as_double() - b.as_double()) <= kRounding * std::abs(a.as_double());
  if (a.is_array() && b.is_array())
    return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(),
                      has_same_numbers);
  return a.dump() == b.dump();
}

double rounded_to(double number, int digits) {
  const std::string text = fmt::format("{:.{}g}", number, digits);
  double rounded = 0;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return rounded;
}

/// Returns the base from which rotary_frequencies() computes these frequencies, or nullopt if there is none.
/// With only one frequency, every base gives the same frequency, so the usual base is returned.
std::optional<double> base_of(const Json& frequencies) {
  constexpr double kUsual = 10000;
  constexpr int kMostDigits = 17;
  if (!frequencies.is_array() || frequencies.items().empty() || frequencies.items().size() % 2 != 0)
    return std::nullopt;
  const auto dim = static_cast<int64_t>(frequencies.items().size());
  const auto has_base = [&](double base) {
    Json expected = Json::array();
    for (const double frequency : rotary_frequencies(base, dim)) expected.push(frequency);
    return has_same_numbers(expected, frequencies);
  };
  if (has_base(kUsual)) return kUsual;
  if (dim < 4 || !frequencies.items()[1].is_number()) return std::nullopt;
  const double base = std::pow(frequencies.items()[1].as_double(), -static_cast<double>(dim / 2));
  // Several bases can give the same frequencies. The user probably wrote the base with the fewest digits.
  for (int digits = 1; std::isfinite(base) && digits <= kMostDigits; ++digits)
    if (const double rounded = rounded_to(base, digits); has_base(rounded)) return rounded;
  return std::nullopt;
}

/// Returns a list of `rank` positive integers as a shape; nullopt for any other JSON.
std::optional<Shape> shape_of(const Json* list, size_t rank) {
  if (!list || !list->is_array() || list->items().size() != rank) return std::nullopt;
  std::vector<int64_t> extents;
  for (const Json& extent : list->items()) {
    if (!extent.is_int() || extent.as_int() < 1 || extent.as_int() > kMostArrayElements) return std::nullopt;
    extents.push_back(extent.as_int());
  }
  return Shape(std::move(extents));
}

/// Returns the class and the options of an initializer, regularizer or constraint as text; "" for null. The
/// text leaves out the number that Keras assigns to each object, so the texts of equal objects are equal.
std::string object_in(const Json* written) {
  if (!written) return "";
  const Json* const options = value_at(*written, "config");
  return written->is_object() ? text_at(*written, "class_name") + (options ? options->dump() : "")
                              : written->dump();
}

/// Recognizes a Keras model that computes an attention layer, and finds the sizes and options of the layer.
class AttentionReader {
 public:
  explicit AttentionReader(const KerasModel& model) : model_(model) {}

  /// Returns nullopt unless the model has the layers that keras_attention_layers() writes.
  std::optional<KerasAttention> read() const {
    KerasAttention found;
    for (const KerasTensor& input : model_.inputs) {
      const Json* const batch = value_at(layer(input.layer).config, "batch_shape");
      if (!batch || !batch->is_array() || batch->items().size() != 3) return std::nullopt;
      const Json sample = Json::array().push(batch->items()[1]).push(batch->items()[2]);
      const auto shape = shape_of(&sample, 2);
      if (!shape) return std::nullopt;
      found.inputs.push_back(*shape);
    }
    if (found.inputs.empty() || found.inputs.size() > kAttentionInputs.size()) return std::nullopt;
    const auto query = heads_of(kAttentionProducts[0]), key = heads_of(kAttentionProducts[1]),
               value = heads_of(kAttentionProducts[2]);
    const auto output = shape_of(option(kAttentionProducts[3], "output_shape"), 2);
    if (!query || !key || !value || !output) return std::nullopt;
    found.output = *output;
    found.heads = (*query)[1];
    found.key_dim = (*query)[2];
    found.kv_heads = (*key)[1];
    found.value_dim = (*value)[2];
    found.use_bias = option(kAttentionProducts[0], "bias_axes") != nullptr;
    if (const Json* const frequencies = option("query_angles", "scale")) {
      found.rotary_base = base_of(*frequencies);
      if (!found.rotary_base) return std::nullopt;
    }
    const Json* const causal = option("attended", "is_causal");
    found.causal = causal ? causal->is_bool() && causal->as_bool() : find("visible_scores") != nullptr;
    if (const Json* const rate = option("dropped", "rate")) {
      if (!rate->is_number()) return std::nullopt;
      found.dropout = rate->as_double();
    }
    return is_written_for(found) ? std::optional(found) : std::nullopt;
  }

  const KerasModelLayer* find(std::string_view name) const {
    const auto found = std::find_if(model_.layers.begin(), model_.layers.end(),
                                    [&](const KerasModelLayer& one) { return one.name == name; });
    return found == model_.layers.end() ? nullptr : &*found;
  }

 private:
  const KerasModelLayer& layer(int number) const { return model_.layers[static_cast<size_t>(number)]; }

  const Json* option(std::string_view layer, const char* key) const {
    const KerasModelLayer* const found = find(layer);
    return found ? value_at(found->config, key) : nullptr;
  }

  std::optional<Shape> heads_of(const char* product) const {
    return shape_of(option(product, "output_shape"), 3);
  }

  /// Returns true if the model has exactly the layers and calls that keras_attention_layers() returns for
  /// these sizes and options.
  bool is_written_for(const KerasAttention& attention) const {
    if (attention.heads % attention.kv_heads != 0 || !ends_are_written() || !has_lists_for(attention))
      return false;
    const Json expected = keras_attention_layers(attention, Json::object().set("activation", "linear"));
    return expected.items().size() == model_.layers.size() &&
           std::all_of(expected.items().begin(), expected.items().end(),
                       [&](const Json& entry) { return is_written(entry); }) &&
           has_equal_products();
  }

  /// Returns true if the lists of numbers in the file have the lengths that the sizes in `attention` require.
  /// This limits the memory for the comparison, because keras_attention_layers() makes lists of these
  /// lengths.
  bool has_lists_for(const KerasAttention& attention) const {
    const int64_t queries = attention.inputs[0][0],
                  keys = attention.inputs[attention_key_input(attention.inputs.size())][0];
    const auto has_list = [&](const char* name, const char* key, int64_t length) {
      const Json* const list = option(name, key);
      return list && list->is_array() && list->items().size() == static_cast<size_t>(length);
    };
    if (attention.rotary_base &&
        (!has_list("query_positions", "offset", queries) || !has_list("key_positions", "offset", keys) ||
         !has_list("query_angles", "scale", attention.key_dim)))
      return false;
    return !find("visible_scores") ||
           (has_list("steps_to_keys", "offset", queries) && has_list("key_numbers", "offset", keys));
  }

  bool ends_are_written() const {
    for (size_t i = 0; i < model_.inputs.size(); ++i)
      if (layer(model_.inputs[i].layer).name != kAttentionInputs[i]) return false;
    return model_.outputs.size() == 1 && layer(model_.outputs[0].layer).name == kAttentionProducts.back();
  }

  bool is_written(const Json& entry) const {
    const KerasModelLayer* const found = find(entry.at("name").as_string());
    if (!found || found->class_name != entry.at("class_name").as_string()) return false;
    if (value_at(found->config, "activity_regularizer")) return false;
    for (const auto& [key, value] : entry.at("config").entries()) {
      if (key == "dtype") continue;  // Keras writes a dtype policy instead
      const Json* const given = value_at(found->config, key.c_str());
      if (given ? !has_same_numbers(value, *given) : !value.is_null()) return false;
    }
    if (found->is_input()) return true;
    std::vector<std::string> expected, given;
    for (const Json& call : entry.at("inbound_nodes").items()) add_inputs(call.at("args"), expected);
    if (found->calls.size() != 1 || !found->calls[0].masks.empty()) return false;
    for (const auto& [key, value] : found->calls[0].arguments.entries())
      if (!value.is_bool() || value.as_bool()) return false;  // Keras writes `training: false`
    for (const KerasTensor& input : found->calls[0].inputs) given.push_back(layer(input.layer).name);
    return expected == given;
  }

  /// Adds the names of the layers whose outputs are arguments of a call.
  static void add_inputs(const Json& arguments, std::vector<std::string>& names) {
    for (const Json& argument : arguments.items())
      if (argument.is_array())
        add_inputs(argument, names);
      else
        names.push_back(argument.at("config").at("keras_history").items()[0].as_string());
  }

  /// Returns true if all four layers of kAttentionProducts have the same options. In this case, these options
  /// are also the options of the attention layer.
  bool has_equal_products() const {
    const KerasModelLayer& first = *find(kAttentionProducts[0]);
    return std::all_of(kAttentionProducts.begin(), kAttentionProducts.end(), [&](const char* name) {
      const KerasModelLayer& other = *find(name);
      if (other.trainable != first.trainable) return false;
      return std::all_of(
          kAttentionWeightOptions.begin(), kAttentionWeightOptions.end(), [&](const char* key) {
            return object_in(value_at(first.config, key)) == object_in(value_at(other.config, key));
          });
    });
  }

  const KerasModel& model_;
};

}  // namespace

Json keras_attention_model(const KerasAttention& attention, const Json& outer, const Json& weights) {
  Json products = Json::object().set("trainable", outer.at("trainable")).set("activation", "linear");
  for (const char* key : kAttentionWeightOptions)
    if (const Json* const value = weights.find(key)) products.set(key, *value);
  const std::vector<std::string> inputs(
      kAttentionInputs.begin(), kAttentionInputs.begin() + static_cast<ptrdiff_t>(attention.inputs.size()));
  return keras_inner_model(outer, keras_attention_layers(attention, products), inputs,
                           kAttentionProducts.back());
}

void restore_attention(KerasModelLayer& layer) {
  const AttentionReader reader(*layer.model);
  const auto found = reader.read();
  if (!found) return;
  const KerasModelLayer& query = *reader.find(kAttentionProducts.front());
  layer.trainable = layer.trainable && query.trainable;
  Json config = Json::object()
                    .set("name", layer.name)
                    .set("trainable", layer.trainable)
                    .set("num_heads", found->heads)
                    .set("key_dim", found->key_dim)
                    .set("causal", found->causal)
                    .set("dropout", found->dropout)
                    .set("use_bias", found->use_bias);
  if (found->value_dim != found->key_dim) config.set("value_dim", found->value_dim);
  if (found->kv_heads != found->heads) config.set("num_key_value_heads", found->kv_heads);
  if (found->rotary_base) config.set("rotary", Json::object().set("base", *found->rotary_base));
  for (const char* key : kAttentionWeightOptions)
    if (const Json* const value = value_at(query.config, key)) config.set(key, *value);
  layer.config = std::move(config);
  layer.class_name = kKerasModelOfAttention;
  layer.is_restored_model = true;
  layer.model = nullptr;
}

}  // namespace dtrain
