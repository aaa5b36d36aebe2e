// Graphs built from configurations: their nodes and names.
#include <algorithm>

#include <doctest/doctest.h>

#include "graph_checks.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

Graph model_of(const std::string& config) {
  return graph_of_config("configs/" + config);
}

}  // namespace

TEST_CASE("layers read the previous layer, and activations are separate nodes") {
  const Graph graph = graph_from(R"(
inputs: {x: [4]}
layers:
  - dense: {units: 3, activation: relu}
  - dense: {units: 2}
)");
  CHECK(names_of_nodes(graph) == Names{"x", "dense", "dense/activation", "dense_1"});
  CHECK(inputs_of(graph, "dense_1") == Names{"dense/activation"});
  CHECK(graph.inputs == std::vector<int>{0});
  CHECK(graph.outputs == std::vector<ValueRef>{{.node = 3, .output = 0}});
  CHECK(graph.nodes[2].is_activation_of_previous);
  CHECK(graph.layer_name(2) == "dense");
  CHECK(graph.nodes[3].outputs[0].shape == Shape{2});
  CHECK(graph.count_parameters(true) == 4 * 3 + 3 + 3 * 2 + 2);
  CHECK(graph.count_parameters(false) == 0);
  CHECK(graph.input_specs()[0].name == "x");
  check_round_trip(graph);
}

TEST_CASE("automatic names avoid given names, also later ones") {
  const Graph graph = graph_from(R"(
inputs: {dense: [4]}
layers:
  - dense: {units: 3}
  - dense: {units: 3}
  - dense: {units: 3, name: dense_1}
)");
  CHECK(names_of_nodes(graph) == Names{"dense", "dense_2", "dense_3", "dense_1"});
}

TEST_CASE("a graph has several inputs, branches and outputs") {
  const Graph graph = graph_from(R"(
inputs: {a: [4], b: {shape: [4], dtype: float32}}
layers:
  - dense: {units: 3, inputs: a, name: left, activation: tanh}
  - dense: {units: 3, inputs: b, name: right}
  - add: {inputs: [left, right]}
  - dense: {units: 1, name: head}
  - dense: {units: 2, inputs: add, name: other, trainable: false}
outputs: [head, other]
)");
  CHECK(graph.inputs == std::vector<int>{0, 1});
  CHECK(inputs_of(graph, "add") == Names{"left/activation", "right"});
  CHECK(inputs_of(graph, "other") == Names{"add"});
  CHECK(graph.layer_name(graph.outputs[0].node) == "head");
  CHECK(graph.layer_name(graph.outputs[1].node) == "other");
  CHECK(graph.count_parameters(false) == 3 * 2 + 2);
  check_round_trip(graph);
}

TEST_CASE("blocks have parameters, repetition, inner names and nested blocks") {
  const Graph graph = graph_from(R"(
inputs: {x: [4]}
blocks:
  pair:
    parameters: {units: 4, rate: 0.5}
    layers:
      - dense: {units: $units, activation: relu}
      - drop: {rate: $rate}
  drop:
    parameters: {rate: 0.1}
    layers:
      - dropout: {rate: $rate, name: noise}
  residual:
    layers:
      - dense: {units: 4}
      - add: {inputs: [dense, input]}
layers:
  - pair: {units: 8, repeat: 2}
  - pair
  - residual: {name: end, repeat: 2, trainable: false}
  - dense: {units: 1, inputs: end}
)");
  CHECK(names_of_nodes(graph) == Names{"x", "pair/dense", "pair/dense/activation", "pair/drop/noise",
                                       "pair_1/dense", "pair_1/dense/activation", "pair_1/drop/noise",
                                       "pair_2/dense", "pair_2/dense/activation", "pair_2/drop/noise",
                                       "end/dense", "end/add", "end_1/dense", "end_1/add", "dense"});
  CHECK(node_of(graph, "pair_1/dense").outputs[0].shape == Shape{8});
  CHECK(node_of(graph, "pair_2/dense").outputs[0].shape == Shape{4});
  CHECK(inputs_of(graph, "end_1/add") == Names{"end_1/dense", "end/add"});
  CHECK(inputs_of(graph, "dense") == Names{"end_1/add"});
  CHECK(graph.count_parameters(false) == 2 * (4 * 4 + 4));
  CHECK(node_of(graph, "pair/drop/noise").layer.resolved.to_yaml().find("0.5") != std::string::npos);
  check_round_trip(graph);
}

TEST_CASE("copies of a repeated block have names that can be read") {
  const Graph graph = graph_from(R"(
inputs: {x: [4]}
blocks: {one: {layers: [dense: {units: 4}]}}
layers:
  - one: {repeat: 3}
  - add: {inputs: [one, one_2]}
)");
  CHECK(inputs_of(graph, "add") == Names{"one/dense", "one_2/dense"});
}

TEST_CASE("layers and the model may use further outputs of a layer") {
  const Graph graph = graph_from(R"(
inputs: {x: [5, 3], y: [7, 3]}
blocks:
  states:
    parameters: {units: 4}
    layers:
      - lstm: {units: $units, return_state: true, name: read}
      - concatenate: {inputs: ["read:1", "read:2"]}
layers:
  - lstm: {units: 2, inputs: x, return_state: true, name: encoder}
  - lstm: {units: 2, inputs: [y, "encoder:1", "encoder:2"], name: decoder}
  - states: {inputs: x, name: both}
  - concatenate: {inputs: [encoder, decoder, both], name: all}
outputs: [all, "encoder:2"]
)");
  const auto encoder = static_cast<int>(node_named(graph, "encoder"));
  const std::vector<ValueRef>& inputs = node_of(graph, "decoder").inputs;
  REQUIRE(inputs.size() == 3);
  CHECK(inputs[1] == ValueRef{encoder, 1});
  CHECK(inputs[2] == ValueRef{encoder, 2});
  CHECK(graph.spec(inputs[2]).name == "encoder:2");
  CHECK(graph.value_name(inputs[2]) == "encoder:2");
  CHECK(graph.outputs.back() == ValueRef{encoder, 2});
  CHECK(node_of(graph, "both/concatenate").inputs[1].output == 2);
  check_round_trip(graph);
}

TEST_CASE("a transformer of repeated blocks has causal attention") {
  const Graph graph = graph_from(R"(
inputs: {tokens: {shape: [16], dtype: int32}}
blocks:
  transformer:
    parameters: {width: 8, heads: 2}
    layers:
      - layer_normalization: {}
      - multi_head_attention: {num_heads: $heads, causal: true, name: attention}
      - add: {name: middle, inputs: [attention, input]}
      - layer_normalization: {}
      - dense: {units: 32, activation: gelu}
      - dense: {units: $width, name: mlp}
      - add: {inputs: [mlp, middle]}
layers:
  - embedding: {input_dim: 256, output_dim: 8, name: token}
  - position_embedding: {sequence_length: 16}
  - transformer: {repeat: 4}
  - layer_normalization: {}
  - dense: {units: 256}
)");
  CHECK(graph.spec(graph.outputs[0]).shape == Shape{16, 256});
  size_t attentions = 0;
  for (const GraphNode& node : graph.nodes) {
    if (node.kind != "multi_head_attention") continue;
    ++attentions;
    REQUIRE(node.parameters.size() == 8);
    CHECK(node.parameters[0].shape == Shape{8, 2, 4});
  }
  CHECK(attentions == 4);
  check_round_trip(graph);
}

TEST_CASE("a layer's device is its own or that of the innermost block with a device") {
  const Graph graph = graph_from(R"(
inputs: {x: [4]}
blocks:
  inner: {layers: [dense: {units: 4, activation: relu}]}
  outer:
    layers:
      - inner
      - inner: {device: cpu:2}
      - dense: {units: 4, device: cpu:3}
layers:
  - dense: {units: 4}
  - outer: {device: cpu:1}
)");
  const auto device = [&](const std::string& name) {
    const auto& configured = node_of(graph, name).device;
    return configured ? configured->id.str() : "";
  };
  CHECK(device("x") == "");
  CHECK(device("dense") == "");
  CHECK(device("outer/inner/dense") == "cpu:1");
  CHECK(device("outer/inner/dense/activation") == "cpu:1");
  CHECK(device("outer/inner_1/dense") == "cpu:2");
  CHECK(device("outer/dense") == "cpu:3");
  CHECK(node_of(graph, "outer/dense").device->mark.str() == "m.yaml:9:35");
  check_round_trip(graph);
}

TEST_CASE("a recompute segment is a layer, a block, the outermost block, or layers with one name") {
  const Graph graph = graph_from(R"(
inputs: {x: [4]}
blocks:
  inner: {layers: [dense: {units: 4, activation: relu}, layer_normalization: {recompute: true}]}
  outer:
    layers:
      - inner: {recompute: true}
      - dense: {units: 4, recompute: {segment: tail}}
      - dense: {units: 4, recompute: {segment: tail}}
layers:
  - dense: {units: 4, activation: relu, recompute: true}
  - dense: {units: 4, name: kept}
  - inner: {recompute: true, repeat: 2}
  - outer: {recompute: true}
  - outer
  - dense: {units: 4, recompute: false}
)");
  std::vector<int> segments;
  for (const GraphNode& node : graph.nodes)
    if (!node.is_activation_of_previous) segments.push_back(node.recompute);
  CHECK(segments == std::vector<int>{-1, 0, -1, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 5, 5, -1});
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].is_activation_of_previous)
      CHECK(graph.nodes[i].recompute == graph.nodes[i - 1].recompute);
  check_round_trip(graph);
}

TEST_CASE("ResNet-20 has the layers, shapes and parameters of the paper") {
  const Graph graph = model_of("resnet20.yaml");
  // The parameters are those of the convolutions, 432 + 3 * 4608 + 14336 + 2 * 18432 + 57344 + 2 * 73728, of
  // the normalizations, 2 * 784, and of the dense layer, 650.
  CHECK(graph.count_parameters(true) == 272'474);
  CHECK(graph.count_parameters(false) == 2 * 784);
  CHECK(node_of(graph, "basic_2/activation_1").outputs[0].shape == Shape{32, 32, 16});
  CHECK(node_of(graph, "widen/add").outputs[0].shape == Shape{16, 16, 32});
  CHECK(node_of(graph, "basic_6/activation_1").outputs[0].shape == Shape{8, 8, 64});
  CHECK(inputs_of(graph, "basic_1/add") == Names{"basic_1/body", "basic/activation_1"});
  CHECK(inputs_of(graph, "widen_1/conv2d_2") == Names{"basic_4/activation_1"});
  CHECK(inputs_of(graph, "widen_1/add") == Names{"widen_1/body", "widen_1/shortcut"});
  CHECK(inputs_of(graph, "basic_3/conv2d") == Names{"widen/activation_1"});
  check_round_trip(graph);
}

TEST_CASE("the models of the shipped configurations have the expected sizes") {
  CHECK(model_of("mnist-mlp.yaml").count_parameters(true) == 784 * 256 + 256 + 256 * 256 + 256 + 2570);
  CHECK(model_of("wide-mlp.yaml").count_parameters(true) == 41'157'101);
  const Graph cnn = model_of("mnist-cnn.yaml");
  CHECK(cnn.count_parameters(true) == 320 + 18'496 + (12 * 12 * 64 * 128 + 128) + 1290);
  check_round_trip(cnn);
}

TEST_CASE("the JSON schema knows the layers, their common keys and the top level") {
  const std::string schema = model_json_schema().dump();
  const Json parsed = Json::parse(schema);
  for (const char* key : {"inputs", "blocks", "layers", "outputs"})
    CHECK(parsed.find("properties")->find(key));
  const Json& items = *parsed.find("properties")->find("layers")->find("items");
  const Json& kinds = *items.find("anyOf")->items()[0].find("oneOf");
  const auto dense = std::find_if(kinds.items().begin(), kinds.items().end(), [](const Json& kind) {
    return kind.find("properties") && kind.find("properties")->find("dense");
  });
  REQUIRE(dense != kinds.items().end());
  // The schema accepts either a mapping or only the value of the one required option.
  const Json& choices = *dense->find("properties")->find("dense")->find("anyOf");
  REQUIRE(choices.items().size() == 2);
  const Json& options = *choices.items()[0].find("properties");
  for (const char* key : {"units", "activation", "name", "inputs", "trainable"}) CHECK(options.find(key));
}
