// multi_head_attention with rotary positions as a Keras model: Keras's layer has no such positions.
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "interop/keras/export/inner_model.h"
#include "interop/keras/export/options.h"
#include "interop/layers/attention.h"

namespace dtrain {

namespace {

constexpr std::array kInputs{"query_input", "value_input", "key_input"};

/// Writes the layers of the model.
class RotaryWriter {
 public:
  RotaryWriter(const Graph& graph, const GraphNode& node, const Json& config)
      : graph_(graph),
        node_(node),
        options_(keras_options(options_of(node.layer))),
        heads_(heads_of(node)),
        dense_(Json::object().set("trainable", config.at("trainable")).set("activation", "linear")) {
    for (const auto& [key, value] : options_.entries())
      if (key.starts_with("kernel_") || key.starts_with("bias_")) dense_.set(key, value);
  }

  Json layers() {
    for (size_t i = 0; i < node_.inputs.size(); ++i)
      add("InputLayer", kInputs[i], Json::object().set("batch_shape", keras_batch_shape(shape_of(i))), {});
    const size_t key = node_.inputs.size() - 1, value = node_.inputs.size() == 1 ? 0 : 1;
    const int64_t queries = shape_of(0)[0], keys = shape_of(key)[0];
    add_product("query", 0);
    add_product("key", key);
    add_product("value", value);
    add_rotation("query", queries);
    add_rotation("key", keys);
    layers_.push(keras_inner_operation(
        "keras.src.ops.nn", "DotProductAttention", "attended",
        Json::object().set("is_causal", option_is_set(options_, "causal")),
        {heads("query_rotated", queries), heads("key_rotated", keys), heads("value_product", keys)}));
    const Shape& output = node_.outputs[0].shape;
    add_dense("attention_output", "abde,dec->abc", output, "c", heads("attended", queries));
    return std::move(layers_);
  }

 private:
  const Shape& shape_of(size_t input) const { return graph_.spec(node_.inputs[input]).shape; }

  /// Returns a tensor of [positions, heads, dim].
  Json heads(const std::string& layer, int64_t positions) const {
    return keras_inner_tensor(layer, {positions, heads_.heads, heads_.key_dim});
  }

  void add(const std::string& class_name, const std::string& name, Json config, std::vector<Json> arguments,
           const char* dtype = "float32") {
    layers_.push(keras_inner_layer_entry(class_name, name, std::move(config), std::move(arguments), dtype));
  }

  void add_dense(const std::string& name, const char* equation, const Shape& output, const char* bias_axes,
                 Json input) {
    Json shape = Json::array();
    for (const int64_t extent : output) shape.push(extent);
    Json config = dense_;
    config.set("equation", equation)
        .set("output_shape", std::move(shape))
        .set("bias_axes", options_.at("use_bias").as_bool() ? Json(bias_axes) : Json());
    add("EinsumDense", name, std::move(config), {std::move(input)});
  }

  void add_product(const std::string& of, size_t input) {
    const Shape& shape = shape_of(input);
    add_dense(of + "_product", "abc,cde->abde", {shape[0], heads_.heads, heads_.key_dim}, "de",
              keras_inner_tensor(kInputs[input], shape));
  }

  /// Adds `of`_rotated: x * cosines + (its halves exchanged, the second one negative) * sines. The angles are
  /// float64: those of late positions have many turns.
  void add_rotation(const std::string& of, int64_t positions) {
    const int64_t half = heads_.key_dim / 2;
    const double base = options_.at("rotary").at("base").as_double();
    Json numbers = Json::array(), frequencies = Json::array();
    for (int64_t i = 0; i < positions; ++i)
      numbers.push(Json::array().push(Json::array().push(static_cast<double>(i))));
    for (int64_t i = 0; i < heads_.key_dim; ++i)
      frequencies.push(std::pow(base, -static_cast<double>(i % half) / static_cast<double>(half)));
    const auto scale = [](Json factor, Json offset) {
      return Json::object().set("scale", std::move(factor)).set("offset", std::move(offset));
    };
    const auto cropping = [](int64_t begin, int64_t end) {
      Json columns = Json::array().push(begin).push(end), rows = Json::array().push(0).push(0);
      return Json::object()
          .set("cropping", Json::array().push(std::move(rows)).push(std::move(columns)))
          .set("data_format", "channels_first");
    };
    const auto half_of = [&](const std::string& layer) {
      return keras_inner_tensor(layer, {positions, heads_.heads, half});
    };
    const auto both = [](Json a, Json b) { return Json::array().push(std::move(a)).push(std::move(b)); };
    const Json x = heads(of + "_product", positions);
    add("Rescaling", of + "_positions", scale(0.0, std::move(numbers)), {x}, "float64");
    add("Rescaling", of + "_angles", scale(std::move(frequencies), 0.0),
        {heads(of + "_positions", positions)}, "float64");
    for (const auto& [function, name] : {std::pair{"Cos", "_cosines"}, std::pair{"Sin", "_sines"}})
      layers_.push(keras_inner_operation("keras.src.ops.numpy", function, of + name, Json::object(),
                                         {heads(of + "_angles", positions)}));
    add("Cropping2D", of + "_first", cropping(0, half), {x});
    add("Cropping2D", of + "_second", cropping(half, 0), {x});
    add("Rescaling", of + "_negative", scale(-1.0, 0.0), {half_of(of + "_second")});
    add("Concatenate", of + "_exchanged", Json::object().set("axis", -1),
        {both(half_of(of + "_negative"), half_of(of + "_first"))});
    add("Multiply", of + "_part", Json::object(), {both(x, heads(of + "_cosines", positions))});
    add("Multiply", of + "_exchanged_part", Json::object(),
        {both(heads(of + "_exchanged", positions), heads(of + "_sines", positions))});
    add("Add", of + "_rotated", Json::object(),
        {both(heads(of + "_part", positions), heads(of + "_exchanged_part", positions))});
  }

  const Graph& graph_;
  const GraphNode& node_;
  const Json options_;
  const Heads heads_;
  Json dense_;  // the options of all products
  Json layers_ = Json::array();
};

}  // namespace

bool is_rotary_in_keras(const Json& options) {
  const auto is_other = [&](const char* key, const char* than) {
    const Json& value = options.at(key);
    return !value.is_null() && !(options.at(than).is_int() && options.at(than).as_int() == value.as_int());
  };
  return option_is_set(options, "rotary") && !is_other("num_key_value_heads", "num_heads") &&
         !is_other("value_dim", "key_dim");
}

void complete_rotary_attention(const Graph& graph, const GraphNode& node, Json& config) {
  std::vector<std::string> inputs(kInputs.begin(),
                                  kInputs.begin() + static_cast<ptrdiff_t>(node.inputs.size()));
  config = keras_inner_model(config, RotaryWriter(graph, node, config).layers(), inputs, "attention_output");
}

}  // namespace dtrain
