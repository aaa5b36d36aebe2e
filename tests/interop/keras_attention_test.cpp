// Keras has no layer for some kinds of attention. Such an attention is exported as a model of Keras's layers,
// and imported from this model. tests/keras compares the outputs of dtrain and Keras.
#include <algorithm>

#include <doctest/doctest.h>

#include "exported.h"
#include "interop/keras/export/export.h"
#include "interop/keras/export/model_config.h"
#include "interop/keras/files/attention_model.h"
#include "interop/keras/files/model_tree.h"
#include "interop/keras/import/import.h"
#include "interop/keras/import/model.h"
#include "support/errors.h"
#include "support/graphs.h"
#include "support/temp_dir.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// Returns a model with this layer, named "a", which reads [3, 4] and [5, 6].
Graph attention(const std::string& options) {
  return graph_from("inputs: {x: [3, 4], y: [5, 6]}\nlayers:\n  - multi_head_attention: {" + options +
                    ", name: a, inputs: [x, y]}\n");
}

Json keras_form(const std::string& options) {
  const Graph graph = attention(options);
  return keras_model_config(graph, "net", keras_layers(graph));
}

std::vector<Json> inner_layers(const Json& model) {
  return model.at("config").at("layers").items().back().at("config").at("layers").items();
}

/// Imports a Keras model, and returns the configuration of dtrain's model.
ConfigNode imported_model(const Json& model) {
  return import_keras_model(*parse_keras_model(model), 3).model;
}

/// Returns a copy of a Keras model in which one option of one of the attention's inner layers has another
/// value.
Json changed(const Json& model, const std::string& layer, const std::string& key, const Json& value) {
  const auto with = [](const Json& object, const std::string& name, Json part) {
    Json copy = object;
    return copy.set(name, std::move(part));
  };
  Json inner = Json::array(), outer = Json::array();
  for (const Json& one : inner_layers(model))
    inner.push(one.at("name").as_string() == layer ? with(one, "config", with(one.at("config"), key, value))
                                                   : one);
  const std::vector<Json>& layers = model.at("config").at("layers").items();
  for (const Json& one : layers)
    outer.push(&one == &layers.back() ? with(one, "config", with(one.at("config"), "layers", inner)) : one);
  return with(model, "config", with(model.at("config"), "layers", outer));
}

}  // namespace

TEST_CASE("an import restores attention that is a model in Keras") {
  for (const char* options : {
           "num_heads: 2, key_dim: 4, rotary: {}",
           "num_heads: 2, key_dim: 4, rotary: {base: 50}",
           "num_heads: 2, key_dim: 6, rotary: {base: 123.456}",
           "num_heads: 1, key_dim: 2, causal: true, rotary: {}",
           "num_heads: 2, key_dim: 4, use_bias: false, rotary: {}",
           "num_heads: 2, key_dim: 4, value_dim: 3, rotary: {}",
           "num_heads: 4, key_dim: 4, num_key_value_heads: 2, causal: true, rotary: {base: 500}",
           "num_heads: 2, key_dim: 4, dropout: 0.25, rotary: {}",
           "num_heads: 4, key_dim: 2, value_dim: 3, num_key_value_heads: 1, causal: true, dropout: 0.5",
           "num_heads: 2, key_dim: 4, rotary: {}, kernel_regularizer: {l2: 0.5}, bias_initializer: ones",
           "num_heads: 2, key_dim: 4, rotary: {}, trainable: false",
       }) {
    CAPTURE(options);
    const Graph wanted = attention(options);
    Diagnostics diagnostics;
    const Graph again = graph_of(imported_model(keras_form(options)), diagnostics);
    REQUIRE(again.nodes.size() == wanted.nodes.size());
    const GraphNode &a = again.nodes.back(), &b = wanted.nodes.back();
    CHECK(a.layer.resolved.to_yaml() == b.layer.resolved.to_yaml());
    CHECK(a.inputs == b.inputs);
    CHECK(a.trainable == b.trainable);
  }
  const ConfigNode model = imported_model(keras_form("num_heads: 2, key_dim: 4, rotary: {}"));
  const ConfigNode& layer = *model.find("layers")->items()[0].find("multi_head_attention");
  CHECK(layer.find("rotary")->entries().empty());
  CHECK_FALSE(layer.find("value_dim"));
}

TEST_CASE("an import restores attention that Keras has saved again") {
  const Json model = keras_form("num_heads: 2, key_dim: 4, rotary: {}, kernel_regularizer: {l2: 0.5}");
  const Json numbered = Json::object()
                            .set("module", "keras.regularizers")
                            .set("class_name", "L2")
                            .set("config", Json::object().set("l2", 0.5))
                            .set("shared_object_id", 7);
  const ConfigNode layers =
      *imported_model(changed(model, "key_product", "kernel_regularizer", numbered)).find("layers");
  REQUIRE(layers.items().size() == 1);
  CHECK(layers.items()[0].find("multi_head_attention")->find("kernel_regularizer"));
  const Json policy = Json::object().set("class_name", "DTypePolicy");
  CHECK(imported_model(changed(model, "key_angles", "dtype", policy)).find("layers")->items().size() == 1);
}

TEST_CASE("a Keras model that computes something else is not imported as attention") {
  const Json model = keras_form("num_heads: 4, key_dim: 2, num_key_value_heads: 2, causal: true, rotary: {}");
  const std::string other = "a/query_product: dtrain has no layer EinsumDense";
  const auto error = [](const Json& form) { return error_of([&] { imported_model(form); }); };
  CHECK(error(model).empty());
  CHECK(error(changed(model, "key_angles", "scale", Json::array().push(1.0).push(0.5))).find(other) !=
        std::string::npos);
  CHECK(error(changed(model, "query_scaled", "scale", 1.0)).find(other) != std::string::npos);
  CHECK(error(changed(model, "key_repeated", "interpolation", "bilinear")).find(other) != std::string::npos);
  CHECK(error(changed(model, "scores", "subscripts", "abde,acde->adcb")).find(other) != std::string::npos);
  CHECK(error(changed(model, "value_product", "kernel_regularizer", "l2")).find(other) != std::string::npos);
  // These layers have no activity_regularizer in dtrain.
  for (const char* layer : {"query_product", "attention_output"})
    CHECK(error(changed(model, layer, "activity_regularizer", "l2")).find(other) != std::string::npos);
  // With this input shape, the lists of positions in the file would have the wrong length.
  CHECK(error(changed(model, "query_input", "batch_shape",
                      Json::array().push(Json()).push(2'000'000'000).push(4)))
            .find(other) != std::string::npos);
}

TEST_CASE("grouped heads, another value_dim and dropout are exported as Keras's operations") {
  const std::vector<Json> inner = inner_layers(keras_form(
      "num_heads: 4, key_dim: 2, value_dim: 3, num_key_value_heads: 2, causal: true, dropout: 0.5"));
  const auto of = [&](const std::string& name) {
    const auto found = std::find_if(inner.begin(), inner.end(),
                                    [&](const Json& one) { return one.at("name").as_string() == name; });
    REQUIRE(found != inner.end());
    return *found;
  };
  CHECK(of("key_repeated").at("config").at("size").dump() == "[1, 2]");
  CHECK(of("value_product").at("config").at("output_shape").dump() == "[5, 2, 3]");
  CHECK(of("scores").at("class_name").as_string() == "Einsum");
  CHECK(of("key_numbers").at("config").at("offset").dump() == "[0.0, 1.0, 2.0, 3.0, 4.0]");
  CHECK(of("steps_to_keys").at("config").at("offset").dump() == "[[0.0], [-1.0], [-2.0]]");
  CHECK(of("dropped").at("config").at("rate").as_double() == 0.5);
  CHECK(of("attention_output").at("config").at("output_shape").dump() == "[3, 4]");
}

TEST_CASE("the weights of restored attention have the names of its parameters") {
  const TempDir directory;
  const TestExport exported(R"(
inputs: {x: [3, 4]}
layers:
  - position_embedding: {sequence_length: 3, name: place}
  - multi_head_attention: {num_heads: 2, key_dim: 4, rotary: {}, bias_initializer: random_normal, name: a}
  - multi_head_attention: {num_heads: 4, key_dim: 2, num_key_value_heads: 2, rotary: {}, use_bias: false, name: b}
)");
  export_keras(exported.model, std::nullopt, directory / "m.keras");
  const KerasImport found =
      import_keras(directory / "m.keras", false, [](const ConfigNode& model) { return model; });
  size_t arrays = 0;
  for (size_t n = 0; n < exported.graph.nodes.size(); ++n) {
    const GraphNode& node = exported.graph.nodes[n];
    for (size_t i = 0; i < node.parameters.size(); ++i, ++arrays) {
      const std::string path = node.name + "/" + node.parameters[i].name;
      CAPTURE(path);
      REQUIRE(found.parameters.contains(path));
      const KerasWeight& weight = found.parameters.at(path);
      const std::span<const float> wanted = exported.model.values(static_cast<int>(n), i);
      REQUIRE(weight.shape == node.parameters[i].shape);
      CHECK(std::equal(wanted.begin(), wanted.end(), weight.values.get()));
    }
  }
  CHECK(arrays == 1 + 8 + 4);
  CHECK(found.parameters.size() == arrays);
}
