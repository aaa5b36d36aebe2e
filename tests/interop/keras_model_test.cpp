// Tests the conversion of graphs to Keras models: the order, names and calls of layers. tests/keras tests the
// result with Keras.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "keras_config.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// Returns the names of Keras's layers in Keras's order.
std::string order(const Graph& graph) {
  std::string names;
  for (const KerasLayer& layer : keras_layers(graph)) names += (names.empty() ? "" : " ") + layer.name;
  return names;
}

}  // namespace

TEST_CASE("a skip connection that is written before its branch is moved to Keras's position") {
  const Graph graph = graph_from(R"(
inputs: {x: [4]}
layers:
  - dense: {units: 4, name: skip}
  - dense: {units: 4, name: first, inputs: x, activation: relu}
  - dense: {units: 4, name: second, activation: tanh}
  - add: {inputs: [second, skip]}
  - dense: {units: 4, name: head, activation: softmax}
)");
  CHECK(order(graph) == "x first second skip add head");
}

TEST_CASE(
    "layers of equal depth are in the order of Keras's search from the outputs, inputs in the order of the "
    "call") {
  CHECK(order(graph_from(R"(
inputs: {x: [4]}
layers:
  - dense: {units: 4, name: left, inputs: x}
  - dense: {units: 4, name: right, inputs: x}
outputs: [right, left]
)")) == "x right left");
  CHECK(order(graph_from(R"(
inputs: {a: [4], b: [4]}
layers:
  - dense: {units: 4, inputs: b}
  - add: {inputs: [a, dense]}
  - dense: {units: 4, inputs: dense, name: end}
outputs: [add, end]
)")) == "b a dense add end");
}

TEST_CASE("an output with readers has the depth of its farthest reader") {
  CHECK(order(graph_from(R"(
inputs: {x: [4]}
layers:
  - dense: {units: 4, name: early}
  - dense: {units: 4, name: middle}
  - dense: {units: 4, name: late}
  - dense: {units: 4, name: aside, inputs: x}
outputs: [early, aside, late]
)")) == "x early middle aside late");
}

TEST_CASE("an unused input comes first among the outputs") {
  Graph graph = graph_from(R"(
inputs: {a: [4], unread: [4]}
layers:
  - dense: {units: 4, inputs: a, name: below}
  - concatenate: {inputs: [below, unread]}
)");
  graph.nodes[3].inputs.pop_back();
  CHECK(order(graph) == "a below unread concatenate");
}

TEST_CASE("inbound_nodes and output_layers name the output of the layer that they read") {
  Graph graph = graph_from("inputs: {x: [4]}\nlayers: [dense: {units: 4}, dense: {units: 2}]\n");
  graph.nodes[1].outputs.push_back({"dense:1", {3}});
  graph.nodes[2].inputs = {{.node = 1, .output = 1}};
  graph.outputs.push_back({.node = 1, .output = 1});
  CHECK(graph.spec(graph.outputs[1]).shape == Shape{3});
  const Json config = model_config(graph, "m");
  CHECK(config.at("layers").items()[2].at("inbound_nodes").dump() == R"([[["dense", 0, 1, {}]]])");
  CHECK(config.at("output_layers").dump() == R"([["dense_1", 0, 0], ["dense", 0, 1]])");
}

TEST_CASE("a graph of 40,000 layers is ordered quickly") {
  std::string yaml = "inputs: {x: [1]}\nblocks: {one: {layers: [activation: relu]}}\nlayers:\n";
  for (int i = 0; i < 4; ++i) yaml += "  - one: {repeat: 10000}\n";
  const Graph graph = graph_from(yaml);
  const std::vector<KerasLayer> layers = keras_layers(graph);
  REQUIRE(layers.size() == 40'001);
  for (size_t i = 0; i < layers.size(); ++i) REQUIRE(layers[i].node == static_cast<int>(i));
}

TEST_CASE("names that Keras, TensorFlow or the file do not allow are changed and remain unique") {
  CHECK(order(graph_from(R"(
inputs: {_x: [4]}
layers:
  - dense: {units: 4, name: a.b}
  - dense: {units: 4, name: a/b}
  - dense: {units: 4, name: a.b_1}
  - dense: {units: 4, name: top_level_model_weights}
  - dense: {units: 4, name: 9-_}
)")) == "layer_x a.b a.b_2 a.b_1 top_level_model_weights_1 9-_");
  const Graph graph = graph_from("inputs: {x: [4]}\nlayers: [dense: {units: 4}]\n");
  CHECK(model_config(graph, "my run").at("name").as_string() == "my_run");
  CHECK(model_config(graph, "_x/y").at("name").as_string() == "model_x_y");
  CHECK(model_config(graph, "").at("name").as_string() == "model");
  CHECK(model_config(graph,
                     "gr\xc3\xbc\xc3\x9f"
                     "e")
            .at("name")
            .as_string() == "gr____e");
}

TEST_CASE("Keras's model_config: fused activations are not layers, names have no '/'") {
  const Graph graph = graph_from(R"(
inputs: {a: [4], b: {shape: [4], dtype: float32}}
blocks: {one: {layers: [dense: {units: 4, activation: relu}]}}
layers:
  - one: {inputs: a}
  - add: {inputs: [one, b], trainable: false}
)");
  const Json config = model_config(graph);
  CHECK(config.at("name").as_string() == "net");
  CHECK(config.at("input_layers").dump() == R"([["a", 0, 0], ["b", 0, 0]])");
  CHECK(config.at("output_layers").dump() == R"([["add", 0, 0]])");
  const auto& layers = config.at("layers").items();
  REQUIRE(layers.size() == 4);
  CHECK(layers[0].dump() ==
        R"({"class_name": "InputLayer", "config": {"batch_input_shape": [null, 4], "dtype": "float32", )"
        R"("name": "a"}, "name": "a", "inbound_nodes": []})");
  CHECK(layers[1].at("class_name").as_string() == "Dense");
  CHECK(layers[1].at("name").as_string() == "one.dense");
  CHECK(layers[1].at("config").at("name").as_string() == "one.dense");
  CHECK(layers[1].at("config").at("dtype").as_string() == "float32");
  CHECK(layers[1].at("config").at("activation").as_string() == "relu");
  CHECK(layers[1].at("config").at("units").as_int() == 4);
  CHECK(layers[1].at("inbound_nodes").dump() == R"([[["a", 0, 0, {}]]])");
  CHECK(layers[2].at("name").as_string() == "b");
  CHECK(layers[3].at("inbound_nodes").dump() == R"([[["one.dense", 0, 0, {}], ["b", 0, 0, {}]]])");
  CHECK_FALSE(layers[3].at("config").at("trainable").as_bool());
}

TEST_CASE("layers that share weights are calls of one Keras layer") {
  const Graph graph = graph_from(R"(
inputs: {x: [4], y: [4]}
layers:
  - dense: {units: 4, name: base, inputs: x, activation: {elu: {alpha: 0.5}}}
  - dense: {units: 4, name: between, inputs: y}
  - dense: {name: again, shared_with: base}
  - dense: {name: thrice, shared_with: base}
  - concatenate: {inputs: [base, thrice]}
)");
  // The depth of a layer is the depth of its deepest call.
  CHECK(order(graph) == "y x between base again.activation base.activation thrice.activation concatenate");
  const Json config = model_config(graph);
  const auto& layers = config.at("layers").items();
  CHECK(layers[3].at("inbound_nodes").dump() ==
        R"([[["x", 0, 0, {}]], [["between", 0, 0, {}]], [["again.activation", 0, 0, {}]]])");
  CHECK(layers[4].at("inbound_nodes").dump() == R"([[["base", 1, 0, {}]]])");
  CHECK(layers[5].at("inbound_nodes").dump() == R"([[["base", 0, 0, {}]]])");
  CHECK(layers[6].at("inbound_nodes").dump() == R"([[["base", 2, 0, {}]]])");
}

TEST_CASE("an embedding whose weights a dense layer uses is called in reverse") {
  const Graph graph = graph_from(R"(
inputs: {x: {shape: [4], dtype: int32}}
layers:
  - embedding: {input_dim: 9, output_dim: 3, name: token}
  - layer_normalization: {name: rows}
  - dense: {name: scores, shared_with: token, activation: relu}
)");
  CHECK(order(graph) == "x token rows scores.activation");
  const Json config = model_config(graph);
  const auto& layers = config.at("layers").items();
  CHECK(layers[1].at("class_name").as_string() == "ReversibleEmbedding");
  const auto& calls = layers[1].at("inbound_nodes").items();
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].at("kwargs").entries().empty());
  CHECK(calls[1].at("kwargs").at("reverse").as_bool());
  const auto read_by = [](const Json& call) {
    return call.at("args").items()[0].at("config").at("keras_history").dump();
  };
  CHECK(read_by(calls[1]) == R"(["rows", 0, 0])");
  CHECK(layers[3].at("class_name").as_string() == "Activation");
  CHECK(layers[3].at("config").at("activation").as_string() == "relu");
  CHECK(read_by(layers[3].at("inbound_nodes").items()[0]) == R"(["token", 1, 0])");
  CHECK(config.at("output_layers").dump() == R"(["scores.activation", 0, 0])");
}

TEST_CASE("activations with options are separate layers in Keras") {
  const Graph graph = graph_from(R"(
inputs: {x: [4]}
layers:
  - dense: {units: 4, name: skip, activation: {elu: {alpha: 0.5}}}
  - dense: {units: 4, name: body, inputs: x, activation: relu}
  - activation: {activation: {leaky_relu: {negative_slope: 0.25}}, name: leaky}
  - add: {inputs: [leaky, skip]}
  - dense: {units: 4, name: head, activation: {elu: {alpha: 2}}}
)");
  CHECK(order(graph) == "x body skip leaky skip.activation add head head.activation");
  const Json config = model_config(graph);
  CHECK(config.at("output_layers").dump() == R"([["head.activation", 0, 0]])");
  const auto& layers = config.at("layers").items();
  CHECK(layers[1].at("config").at("activation").as_string() == "relu");
  CHECK(layers[2].at("config").at("activation").as_string() == "linear");
  CHECK(layers[3].at("class_name").as_string() == "LeakyReLU");
  CHECK(layers[3].at("config").dump() ==
        R"({"name": "leaky", "trainable": true, "dtype": "float32", "alpha": 0.25})");
  CHECK(layers[4].at("class_name").as_string() == "ELU");
  CHECK(layers[4].at("config").at("alpha").as_double() == 0.5);
  CHECK(layers[4].at("inbound_nodes").dump() == R"([[["skip", 0, 0, {}]]])");
  CHECK(layers[5].at("inbound_nodes").dump() == R"([[["leaky", 0, 0, {}], ["skip.activation", 0, 0, {}]]])");
}
