// Layers and blocks that share weights (`shared_with`).
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "graph_checks.h"

using namespace dtrain;
using namespace dtrain::test;

TEST_CASE("shared weights belong to the first layer of that name, in blocks by the block's names") {
  const Graph graph = graph_from(R"(
inputs: {x: [4], y: [4]}
blocks:
  twice:
    layers:
      - dense: {units: 4, activation: tanh, name: a}
      - dense: {name: b, shared_with: a}
layers:
  - dense: {units: 4, activation: relu, name: first, inputs: x}
  - dense: {name: second, shared_with: first, inputs: y}
  - dense: {name: third, shared_with: second}
  - twice: {repeat: 2}
  - dense: {shared_with: twice_1/a, name: last}
  - concatenate: {inputs: [first, last]}
)");
  const auto owner = [&](const std::string& name) {
    const int shared = node_of(graph, name).shared_with;
    return shared < 0 ? "" : graph.nodes[static_cast<size_t>(shared)].name;
  };
  CHECK(owner("first") == "");
  CHECK(owner("second") == "first");
  CHECK(owner("third") == "first");  // the owner is not `second`, which shares its weights
  CHECK(owner("twice/b") == "twice/a");
  CHECK(owner("twice_1/b") == "twice_1/a");
  CHECK(owner("last") == "twice_1/a");
  CHECK(node_of(graph, "second/activation").layer->elementwise()->kind == Activation::relu);
  CHECK(inputs_of(graph, "third") == Names{"second/activation"});
  CHECK(graph.count_parameters(true) == 3 * (4 * 4 + 4));
  check_round_trip(graph);
}

TEST_CASE("a dense layer may use the weights of an embedding, and has separate options") {
  const Graph graph = graph_from(R"(
inputs: {x: {shape: [4], dtype: int32}}
layers:
  - embedding: {input_dim: 9, output_dim: 3, name: token}
  - dense: {name: scores, shared_with: token, activation: relu}
  - dense: {units: 3, name: narrow}
  - dense: {name: again, shared_with: scores}
  - dense: {name: plain, shared_with: token, inputs: narrow, use_bias: false}
  - concatenate: {inputs: [again, plain]}
)");
  const auto token = static_cast<int>(node_named(graph, "token"));
  for (const char* name : {"scores", "again", "plain"}) {
    CAPTURE(name);
    const auto number = static_cast<int>(node_named(graph, name));
    CHECK(graph.is_tied(number));
    CHECK(graph.owner(number) == token);
    CHECK(node_of(graph, name).outputs[0].shape == Shape{4, 9});
    CHECK(node_of(graph, name).parameters.size() == 1);
  }
  CHECK_FALSE(graph.is_tied(token));
  for (const char* name : {"scores/activation", "again/activation"})
    CHECK(node_of(graph, name).layer->elementwise()->kind == Activation::relu);
  CHECK(names_of_nodes(graph).size() == 9);  // `plain` has no activation
  CHECK(graph.count_parameters(true) == 9 * 3 + (9 * 3 + 3));
  check_round_trip(graph);
}

TEST_CASE("a layer that shares weights has the activity_regularizer of the layer that it names") {
  const Graph graph = graph_from(R"(
inputs: {x: {shape: [4], dtype: int32}}
layers:
  - embedding: {input_dim: 9, output_dim: 3, name: token, activity_regularizer: {l1: 1}}
  - dense: {units: 3, name: narrow, activation: relu, activity_regularizer: {l1: 2}}
  - dense: {name: narrower, shared_with: narrow}
  - dense: {name: scores, shared_with: token, activity_regularizer: {l1: 4}}
  - dense: {units: 3, name: back}
  - dense: {name: again, shared_with: scores}
  - dense: {name: plain, shared_with: token, inputs: back}
  - concatenate: {inputs: [again, plain]}
)");
  const std::map<std::string, float> expected = {
      {"token", 1}, {"narrow/activation", 2}, {"scores", 4}, {"narrower/activation", 2}, {"again", 4}};
  for (const GraphNode& node : graph.nodes) {
    CAPTURE(node.name);
    const auto found = expected.find(node.name);
    CHECK(node.activity_penalty().l1 == (found == expected.end() ? 0 : found->second));
  }
  check_round_trip(graph);
}

TEST_CASE("an embedding and a dense layer with its weights may be in a block that is shared") {
  const Graph graph = graph_from(R"(
inputs: {x: {shape: [4], dtype: int32}, y: {shape: [4], dtype: int32}}
blocks:
  words:
    layers:
      - embedding: {input_dim: 9, output_dim: 3, name: token}
      - dense: {name: scores, shared_with: token}
layers:
  - words: {name: left, inputs: x}
  - words: {name: right, inputs: y, shared_with: left}
  - concatenate: {inputs: [left, right]}
)");
  for (const char* name : {"left/scores", "right/token", "right/scores"})
    CHECK(graph.owner(static_cast<int>(node_named(graph, name))) ==
          static_cast<int>(node_named(graph, "left/token")));
  CHECK(graph.count_parameters(true) == 27);
  check_round_trip(graph);
}

TEST_CASE("a block shares weights layer by layer, including nested blocks") {
  const Graph graph = graph_from(R"(
inputs: {x: [4], y: [4]}
blocks:
  inner: {layers: [dense: {units: 4}]}
  tower:
    parameters: {act: relu}
    layers:
      - dense: {units: 4, activation: $act, name: a}
      - dropout: {rate: 0.5}
      - inner: {repeat: 2}
      - layer_normalization: {}
      - dense: {name: b, shared_with: a}
layers:
  - tower: {name: left, inputs: x, act: tanh}
  - tower: {name: right, inputs: y, shared_with: left}
  - tower: {name: more, shared_with: right, repeat: 2}
  - dense: {name: last, shared_with: more_1/a}
  - concatenate: {inputs: [left, last]}
)");
  const auto owner = [&](const std::string& name) {
    const int shared = node_of(graph, name).shared_with;
    return shared < 0 ? "" : graph.nodes[static_cast<size_t>(shared)].name;
  };
  for (const char* use : {"right/", "more/", "more_1/"}) {
    CAPTURE(use);
    const std::string prefix = use;
    for (const char* layer : {"a", "inner/dense", "inner_1/dense", "layer_normalization"})
      CHECK(owner(prefix + layer) == std::string("left/") + layer);
    CHECK(owner(prefix + "b") == "left/a");
    CHECK(owner(prefix + "dropout") == "");  // dropout has no weights
    CHECK(node_of(graph, prefix + "a/activation").layer->elementwise()->kind == Activation::tanh);
  }
  CHECK(owner("left/inner_1/dense") == "");
  CHECK(owner("last") == "left/a");
  CHECK(graph.count_parameters(true) == 3 * (4 * 4 + 4) + 8);
  check_round_trip(graph);
}

TEST_CASE("shared weights are frozen if their first layer is frozen") {
  const std::string model = R"(
inputs: {x: [4]}
layers:
  - dense: {units: 4, name: a}
  - dense: {name: b, shared_with: a}
freeze: )";
  for (const char* patterns : {"a", "[a, b]", "'*'"}) {
    CAPTURE(patterns);
    const Graph graph = graph_from(model + patterns + "\n");
    CHECK_FALSE(node_of(graph, "a").trainable);
    CHECK_FALSE(node_of(graph, "b").trainable);
    CHECK(graph.count_parameters(false) == 20);
    check_round_trip(graph);
  }
  const Graph graph = graph_from(R"(
inputs: {x: [4]}
layers:
  - dense: {units: 4, name: a, trainable: false}
  - dense: {name: b, shared_with: a}
)");
  CHECK_FALSE(node_of(graph, "b").trainable);
  check_round_trip(graph);
}
