#include "interop/keras/files/attention_model.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "interop/keras/files/inner_model.h"
#include "interop/keras/files/json.h"

namespace dtrain {

namespace {

constexpr std::array kInputs{"query_input", "value_input", "key_input"};
constexpr std::array kProducts{"query_product", "key_product", "value_product", "attention_output"};
constexpr std::array kWeightOptions{"kernel_initializer", "kernel_regularizer", "kernel_constraint",
                                    "bias_initializer",   "bias_regularizer",   "bias_constraint"};

/// The inputs of an attention with this number of inputs that keys and values come from.
size_t key_input(size_t inputs) {
  return inputs - 1;
}
size_t value_input(size_t inputs) {
  return inputs == 1 ? 0 : 1;
}

/// Returns the frequencies of the elements of a head, whose halves have the same: base^(-i / half).
std::vector<double> frequencies_of(double base, int64_t dim) {
  const int64_t half = dim / 2;
  std::vector<double> frequencies;
  for (int64_t i = 0; i < dim; ++i)
    frequencies.push_back(std::pow(base, -static_cast<double>(i % half) / static_cast<double>(half)));
  return frequencies;
}

Json list_of(const Shape& shape) {
  Json list = Json::array();
  for (const int64_t extent : shape) list.push(extent);
  return list;
}

/// Returns the list [a, b] as one argument of a call.
Json both(Json a, Json b) {
  return Json::array().push(std::move(a)).push(std::move(b));
}

Json rescaling(Json scale, Json offset) {
  return Json::object().set("scale", std::move(scale)).set("offset", std::move(offset));
}

/// Writes the layers of the model.
class AttentionWriter {
 public:
  /// `products`: the options that all products have. Keeps references to both arguments.
  AttentionWriter(const KerasAttention& attention, const Json& products)
      : its_(attention), products_(products) {}

  Json layers() {
    for (size_t i = 0; i < its_.inputs.size(); ++i)
      add("InputLayer", kInputs[i], Json::object().set("batch_shape", keras_batch_shape(its_.inputs[i])), {});
    const size_t key_from = key_input(its_.inputs.size()), value_from = value_input(its_.inputs.size());
    const int64_t queries = its_.inputs[0][0], keys = its_.inputs[key_from][0];
    const Tensor query = rotated("query", product("query", 0, {queries, its_.heads, its_.key_dim}));
    const Tensor key = rotated("key", product("key", key_from, {keys, its_.kv_heads, its_.key_dim}));
    const Tensor value = product("value", value_from, {keys, its_.kv_heads, its_.value_dim});
    const bool has_operation =
        its_.kv_heads == its_.heads && its_.value_dim == its_.key_dim && its_.dropout == 0;
    const Shape shape{queries, its_.heads, its_.value_dim};
    const Tensor attended = has_operation ? operation("keras.src.ops.nn", "DotProductAttention", "attended",
                                                      Json::object().set("is_causal", its_.causal),
                                                      {query.json(), key.json(), value.json()}, shape)
                                          : weighted_sum(query, key, value, shape);
    add("EinsumDense", kProducts.back(), dense("abde,dec->abc", its_.output, "c"), {attended.json()});
    return std::move(layers_);
  }

 private:
  /// The output of a layer of the model.
  struct Tensor {
    std::string layer;
    Shape shape;

    Json json() const { return keras_inner_tensor(layer, shape); }
  };

  void add(const std::string& class_name, const std::string& name, Json config, std::vector<Json> arguments,
           const char* dtype = "float32") {
    layers_.push(keras_inner_layer_entry(class_name, name, std::move(config), std::move(arguments), dtype));
  }

  /// Adds a layer with one input.
  Tensor layer(const std::string& class_name, const std::string& name, Json config, const Tensor& x,
               const Shape& shape, const char* dtype = "float32") {
    add(class_name, name, std::move(config), {x.json()}, dtype);
    return {name, shape};
  }

  /// Adds a layer whose argument is a list of two tensors.
  Tensor merge(const std::string& class_name, const std::string& name, const Tensor& a, const Tensor& b,
               Json config = Json::object()) {
    add(class_name, name, std::move(config), {both(a.json(), b.json())});
    return {name, a.shape};
  }

  Tensor operation(const std::string& module, const std::string& class_name, const std::string& name,
                   Json config, std::vector<Json> arguments, const Shape& shape) {
    layers_.push(keras_inner_operation(module, class_name, name, std::move(config), std::move(arguments)));
    return {name, shape};
  }

  Tensor einsum(const std::string& name, const char* subscripts, const Tensor& a, const Tensor& b,
                const Shape& shape) {
    return operation("keras.src.ops.numpy", "Einsum", name, Json::object().set("subscripts", subscripts),
                     {a.json(), b.json()}, shape);
  }

  Json dense(const char* equation, const Shape& output, const char* bias_axes) const {
    Json config = products_;
    return config.set("equation", equation)
        .set("output_shape", list_of(output))
        .set("bias_axes", its_.use_bias ? Json(bias_axes) : Json());
  }

  Tensor product(const std::string& of, size_t input, const Shape& heads) {
    return layer("EinsumDense", of + "_product", dense("abc,cde->abde", heads, "de"),
                 {kInputs[input], its_.inputs[input]}, heads);
  }

  /// Adds `of`_rotated: x * cosines + (its halves exchanged, the second one negative) * sines. The angles are
  /// float64: those of late positions have many turns.
  Tensor rotated(const std::string& of, const Tensor& x) {
    if (!its_.rotary_base) return x;
    const int64_t half = its_.key_dim / 2;
    const Shape of_half{x.shape[0], x.shape[1], half};
    Json numbers = Json::array(), frequencies = Json::array();
    for (int64_t i = 0; i < x.shape[0]; ++i)
      numbers.push(Json::array().push(Json::array().push(static_cast<double>(i))));
    for (const double frequency : frequencies_of(*its_.rotary_base, its_.key_dim))
      frequencies.push(frequency);
    const auto cropping = [](int64_t begin, int64_t end) {
      return Json::object()
          .set("cropping", both(both(0, 0), both(begin, end)))
          .set("data_format", "channels_first");
    };
    const Tensor positions =
        layer("Rescaling", of + "_positions", rescaling(0.0, std::move(numbers)), x, x.shape, "float64");
    const Tensor angles = layer("Rescaling", of + "_angles", rescaling(std::move(frequencies), 0.0),
                                positions, x.shape, "float64");
    const auto of_angles = [&](const char* function, const char* name) {
      return operation("keras.src.ops.numpy", function, of + name, Json::object(), {angles.json()}, x.shape);
    };
    const Tensor cosines = of_angles("Cos", "_cosines"), sines = of_angles("Sin", "_sines");
    const Tensor first = layer("Cropping2D", of + "_first", cropping(0, half), x, of_half);
    const Tensor second = layer("Cropping2D", of + "_second", cropping(half, 0), x, of_half);
    const Tensor negative = layer("Rescaling", of + "_negative", rescaling(-1.0, 0.0), second, of_half);
    Tensor exchanged =
        merge("Concatenate", of + "_exchanged", negative, first, Json::object().set("axis", -1));
    exchanged.shape = x.shape;
    const Tensor part = merge("Multiply", of + "_part", x, cosines);
    const Tensor exchanged_part = merge("Multiply", of + "_exchanged_part", exchanged, sines);
    return merge("Add", of + "_rotated", part, exchanged_part);
  }

  /// Adds `of`_repeated, in which each head of keys or values occurs as often as heads of queries read it.
  Tensor repeated(const std::string& of, const Tensor& x) {
    if (its_.kv_heads == its_.heads) return x;
    return layer("UpSampling2D", of + "_repeated",
                 Json::object()
                     .set("size", both(1, its_.heads / its_.kv_heads))
                     .set("data_format", "channels_last")
                     .set("interpolation", "nearest"),
                 x, {x.shape[0], its_.heads, x.shape[2]});
  }

  /// Adds softmax(query * key / sqrt(key_dim)) * value. `result`: its shape. The path from the product of
  /// queries is at least as long as that from the product of keys: Keras numbers the layers by these lengths.
  Tensor weighted_sum(const Tensor& query, const Tensor& key, const Tensor& value, const Shape& result) {
    const Shape shape{its_.heads, query.shape[0], key.shape[0]};
    const double scale = 1 / std::sqrt(static_cast<double>(its_.key_dim));
    const Tensor scaled = layer("Rescaling", "query_scaled", rescaling(scale, 0.0), query, query.shape);
    Tensor scores = einsum("scores", "abde,acde->adbc", scaled, repeated("key", key), shape);
    if (its_.causal) scores = without_later(scores);
    Tensor shares = layer("Softmax", "weights", Json::object().set("axis", -1), scores, shape);
    if (its_.dropout != 0)
      shares = layer("Dropout", "dropped", Json::object().set("rate", its_.dropout), shares, shape);
    return einsum("attended", "adbc,acde->abde", shares, repeated("value", value), result);
  }

  /// Adds the scores minus much for each step from a query to a later key.
  Tensor without_later(const Tensor& scores) {
    constexpr double kMuch = 1e9;
    Json keys = Json::array(), queries = Json::array();
    for (int64_t i = 0; i < scores.shape[2]; ++i) keys.push(static_cast<double>(i));
    for (int64_t i = 0; i < scores.shape[1]; ++i) queries.push(Json::array().push(static_cast<double>(-i)));
    const Shape& shape = scores.shape;
    const Tensor numbers = layer("Rescaling", "key_numbers", rescaling(0.0, std::move(keys)), scores, shape);
    const Tensor steps =
        layer("Rescaling", "steps_to_keys", rescaling(1.0, std::move(queries)), numbers, shape);
    const Tensor later =
        layer("ReLU", "steps_to_later_keys",
              Json::object().set("max_value", Json()).set("negative_slope", 0.0).set("threshold", 0.0), steps,
              shape);
    const Tensor penalties = layer("Rescaling", "penalties", rescaling(-kMuch, 0.0), later, shape);
    return merge("Add", "visible_scores", scores, penalties);
  }

  const KerasAttention& its_;
  const Json& products_;
  Json layers_ = Json::array();
};

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

/// Returns the base of frequencies; nullopt if they have none. With one frequency, the base has no effect.
std::optional<double> base_of(const Json& frequencies) {
  constexpr double kUsual = 10000;
  constexpr int kMostDigits = 17;
  if (!frequencies.is_array() || frequencies.items().empty() || frequencies.items().size() % 2 != 0)
    return std::nullopt;
  const auto dim = static_cast<int64_t>(frequencies.items().size());
  const auto has_base = [&](double base) {
    Json expected = Json::array();
    for (const double frequency : frequencies_of(base, dim)) expected.push(frequency);
    return has_same_numbers(expected, frequencies);
  };
  if (has_base(kUsual)) return kUsual;
  if (dim < 4 || !frequencies.items()[1].is_number()) return std::nullopt;
  const double base = std::pow(frequencies.items()[1].as_double(), -static_cast<double>(dim / 2));
  // The shortest number with these frequencies is the one that the user wrote.
  for (int digits = 1; std::isfinite(base) && digits <= kMostDigits; ++digits)
    if (const double rounded = rounded_to(base, digits); has_base(rounded)) return rounded;
  return std::nullopt;
}

/// Returns a list of positive integers as a shape; nullopt for other JSON, and for another number of them.
std::optional<Shape> shape_of(const Json* list, size_t rank) {
  if (!list || !list->is_array() || list->items().size() != rank) return std::nullopt;
  std::vector<int64_t> extents;
  for (const Json& extent : list->items()) {
    if (!extent.is_int() || extent.as_int() < 1 || extent.as_int() > kMostArrayElements) return std::nullopt;
    extents.push_back(extent.as_int());
  }
  return Shape(std::move(extents));
}

/// Returns the class and the options of an initializer, regularizer or constraint as text, without the number
/// that Keras gives to each object; "" for null.
std::string object_in(const Json* written) {
  if (!written) return "";
  const Json* const options = value_at(*written, "config");
  return written->is_object() ? text_at(*written, "class_name") + (options ? options->dump() : "")
                              : written->dump();
}

/// Finds the sizes and options of an attention in its model.
class AttentionReader {
 public:
  explicit AttentionReader(const KerasModel& model) : model_(model) {}

  /// Returns nullopt unless the model is one that AttentionWriter writes.
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
    if (found.inputs.empty() || found.inputs.size() > kInputs.size()) return std::nullopt;
    const auto query = heads_of(kProducts[0]), key = heads_of(kProducts[1]), value = heads_of(kProducts[2]);
    const auto output = shape_of(option(kProducts[3], "output_shape"), 2);
    if (!query || !key || !value || !output) return std::nullopt;
    found.output = *output;
    found.heads = (*query)[1];
    found.key_dim = (*query)[2];
    found.kv_heads = (*key)[1];
    found.value_dim = (*value)[2];
    found.use_bias = option(kProducts[0], "bias_axes") != nullptr;
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

  /// Returns whether the writer makes the same layers, with the same calls, of these sizes and options.
  bool is_written_for(const KerasAttention& attention) const {
    if (attention.heads % attention.kv_heads != 0 || !ends_are_written() || !has_lists_for(attention))
      return false;
    const Json expected = AttentionWriter(attention, Json::object().set("activation", "linear")).layers();
    return expected.items().size() == model_.layers.size() &&
           std::all_of(expected.items().begin(), expected.items().end(),
                       [&](const Json& entry) { return is_written(entry); }) &&
           has_equal_products();
  }

  /// Returns whether the lists of numbers have the lengths that follow from the sizes. So the writer makes no
  /// longer lists than the file has.
  bool has_lists_for(const KerasAttention& attention) const {
    const int64_t queries = attention.inputs[0][0],
                  keys = attention.inputs[key_input(attention.inputs.size())][0];
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
      if (layer(model_.inputs[i].layer).name != kInputs[i]) return false;
    return model_.outputs.size() == 1 && layer(model_.outputs[0].layer).name == kProducts.back();
  }

  bool is_written(const Json& entry) const {
    const KerasModelLayer* const found = find(entry.at("name").as_string());
    if (!found || found->class_name != entry.at("class_name").as_string()) return false;
    if (value_at(found->config, "activity_regularizer")) return false;
    for (const auto& [key, value] : entry.at("config").entries()) {
      if (key == "dtype") continue;  // Keras writes a policy
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

  /// Adds the names of the layers that the arguments of a call come from.
  static void add_inputs(const Json& arguments, std::vector<std::string>& names) {
    for (const Json& argument : arguments.items())
      if (argument.is_array())
        add_inputs(argument, names);
      else
        names.push_back(argument.at("config").at("keras_history").items()[0].as_string());
  }

  /// Returns whether all products have the same options, which are those of the attention.
  bool has_equal_products() const {
    const KerasModelLayer& first = *find(kProducts[0]);
    return std::all_of(kProducts.begin(), kProducts.end(), [&](const char* name) {
      const KerasModelLayer& other = *find(name);
      if (other.trainable != first.trainable) return false;
      return std::all_of(kWeightOptions.begin(), kWeightOptions.end(), [&](const char* key) {
        return object_in(value_at(first.config, key)) == object_in(value_at(other.config, key));
      });
    });
  }

  const KerasModel& model_;
};

}  // namespace

Json keras_attention_model(const KerasAttention& attention, const Json& outer, const Json& weights) {
  Json products = Json::object().set("trainable", outer.at("trainable")).set("activation", "linear");
  for (const char* key : kWeightOptions)
    if (const Json* const value = weights.find(key)) products.set(key, *value);
  const std::vector<std::string> inputs(kInputs.begin(),
                                        kInputs.begin() + static_cast<ptrdiff_t>(attention.inputs.size()));
  return keras_inner_model(outer, AttentionWriter(attention, products).layers(), inputs, kProducts.back());
}

void restore_attention(KerasModelLayer& layer) {
  const AttentionReader reader(*layer.model);
  const auto found = reader.read();
  if (!found) return;
  const KerasModelLayer& query = *reader.find(kProducts.front());
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
  for (const char* key : kWeightOptions)
    if (const Json* const value = value_at(query.config, key)) config.set(key, *value);
  layer.config = std::move(config);
  layer.class_name = kKerasModelOfAttention;
  layer.is_restored_model = true;
  layer.model = nullptr;
}

}  // namespace dtrain
