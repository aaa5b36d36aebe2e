#include "interop/keras/files/attention_layers.h"

#include <cmath>
#include <string>
#include <utility>

#include "interop/keras/files/inner_model.h"

namespace dtrain {

namespace {

/// Returns the index of the input from which an attention layer computes its values. `inputs`: the number of
/// inputs of the layer.
size_t value_input(size_t inputs) {
  return inputs == 1 ? 0 : 1;
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

/// Writes the layers of a Keras model that computes multi_head_attention.
class AttentionWriter {
 public:
  /// `products`: the options that the four layers of kAttentionProducts share. Both arguments must outlive
  /// this object.
  AttentionWriter(const KerasAttention& attention, const Json& products)
      : its_(attention), products_(products) {}

  Json layers() {
    for (size_t i = 0; i < its_.inputs.size(); ++i)
      add("InputLayer", kAttentionInputs[i],
          Json::object().set("batch_shape", keras_batch_shape(its_.inputs[i])), {});
    const size_t key_from = attention_key_input(its_.inputs.size()),
                 value_from = value_input(its_.inputs.size());
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
    add("EinsumDense", kAttentionProducts.back(), dense("abde,dec->abc", its_.output, "c"),
        {attended.json()});
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
                 {kAttentionInputs[input], its_.inputs[input]}, heads);
  }

  /// Adds the layers that rotate pairs of elements (rotary embedding). The last of them is named
  /// `of`_rotated. It computes x * cosines + y * sines, where y is x with its two halves exchanged and one
  /// half negated. The angles are float64, because the angles of late positions are large.
  Tensor rotated(const std::string& of, const Tensor& x) {
    if (!its_.rotary_base) return x;
    const int64_t half = its_.key_dim / 2;
    const Shape of_half{x.shape[0], x.shape[1], half};
    Json numbers = Json::array(), frequencies = Json::array();
    for (int64_t i = 0; i < x.shape[0]; ++i)
      numbers.push(Json::array().push(Json::array().push(static_cast<double>(i))));
    for (const double frequency : rotary_frequencies(*its_.rotary_base, its_.key_dim))
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

  /// Adds the layer `of`_repeated. With grouped queries, several query heads read the same key head and value
  /// head, so this layer repeats each key or value head once for each of these query heads.
  Tensor repeated(const std::string& of, const Tensor& x) {
    if (its_.kv_heads == its_.heads) return x;
    return layer("UpSampling2D", of + "_repeated",
                 Json::object()
                     .set("size", both(1, its_.heads / its_.kv_heads))
                     .set("data_format", "channels_last")
                     .set("interpolation", "nearest"),
                 x, {x.shape[0], its_.heads, x.shape[2]});
  }

  /// Adds the layers that compute softmax(query * key / sqrt(key_dim)) * value, whose shape is `result`. The
  /// path from the layer that computes the queries to the output is at least as long as the path from the
  /// layer that computes the keys. Keras orders and numbers layers by the lengths of these paths.
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

  /// Adds the causal mask to the scores: the score of a key that is n positions after its query is reduced by
  /// n * kMuch.
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

}  // namespace

std::vector<double> rotary_frequencies(double base, int64_t dim) {
  const int64_t half = dim / 2;
  std::vector<double> frequencies;
  for (int64_t i = 0; i < dim; ++i)
    frequencies.push_back(std::pow(base, -static_cast<double>(i % half) / static_cast<double>(half)));
  return frequencies;
}

Json keras_attention_layers(const KerasAttention& attention, const Json& products) {
  return AttentionWriter(attention, products).layers();
}

}  // namespace dtrain
