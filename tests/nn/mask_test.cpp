// Tests masks in graphs: which values have masks, and which layers read masks.
#include <doctest/doctest.h>

#include "support/errors.h"
#include "support/graphs.h"

namespace dtrain::test {
namespace {

std::string model_of(const std::string& layers, const std::string& inputs = "x: {shape: [5], dtype: int32}") {
  return "inputs: {" + inputs + "}\nlayers: [" + layers + "]\n";
}

const std::string kEmbedding = "embedding: {input_dim: 9, output_dim: 4, mask_zero: true}";

/// Returns the error messages for a model.
std::string errors_of_model(const std::string& yaml) {
  Diagnostics diagnostics;
  parse_model(parse_yaml(yaml, "m.yaml", diagnostics), diagnostics);
  std::string text;
  for (const auto& item : diagnostics.items()) text += item.message + "\n";
  return text;
}

bool output_is_masked(const Graph& graph) {
  return graph.mask_of(graph.outputs[0]) != ValueRef();
}

}  // namespace

TEST_CASE("layers pass on the mask of their input, read it, or end it") {
  const Graph graph = graph_from(
      model_of(kEmbedding +
               ", dropout: 0.5, {dense: {units: 3, activation: relu}}, {lstm: {units: 2, return_sequences: "
               "true}}, {gru: {units: 2}}, {dense: {units: 1}}"));
  const auto node = [&](const char* name) -> const GraphNode& {
    return graph.nodes[node_named(graph, name)];
  };
  const ValueRef mask{static_cast<int>(node_named(graph, "embedding")), 1};
  CHECK(graph.spec(mask).shape == Shape{5});
  CHECK(graph.spec(mask).dtype == DType::uint8);
  CHECK(node("dense/activation").mask_of_output(0) == mask);
  CHECK(node("dense").masks.empty());
  CHECK(node("lstm").masks == std::vector{mask});
  CHECK(node("lstm").mask_of_output(0) == mask);
  CHECK(node("gru").masks == std::vector{mask});
  CHECK(node("gru").mask_of_output(0) == ValueRef());
  CHECK_FALSE(output_is_masked(graph));
}

TEST_CASE("a classifier of texts reads the mask up to the mean of the words") {
  const std::string both =
      ", {bidirectional: {layer: {lstm: {units: 6, return_sequences: true}}, merge_mode: ";
  const Graph graph = graph_from(model_of(kEmbedding + both +
                                          "concat}}, {multi_head_attention: {num_heads: 4, causal: true}}, "
                                          "global_average_pooling1d, {dense: {units: 2}}"));
  const ValueRef mask{static_cast<int>(node_named(graph, "embedding")), 1};
  for (const char* name : {"bidirectional", "multi_head_attention", "global_average_pooling1d"}) {
    CAPTURE(name);
    CHECK(graph.nodes[node_named(graph, name)].masks == std::vector{mask});
  }
  CHECK(graph.spec(graph.outputs[0]).shape == Shape{2});
  CHECK_FALSE(output_is_masked(graph));
  const GraphNode two = graph_from(model_of(kEmbedding + both + "none}}")).nodes.back();
  CHECK(two.mask_of_output(0) == mask);
  CHECK(two.mask_of_output(1) == mask);
}

TEST_CASE("an embedding without mask_zero creates no mask") {
  const Graph graph = graph_from(model_of("embedding: {input_dim: 9, output_dim: 4}, {dense: {units: 2}}"));
  CHECK_FALSE(output_is_masked(graph));
  CHECK(graph.nodes[1].outputs.size() == 1);
}

TEST_CASE("masking creates a mask from features, and users do not see it as an output") {
  const std::string inputs = "x: [6, 3]";
  const Graph graph = graph_from(model_of("masking: {mask_value: -1}, {dense: {units: 2}}", inputs));
  CHECK(output_is_masked(graph));
  CHECK(graph.spec(graph.mask_of(graph.outputs[0])).shape == Shape{6});
  CHECK(errors_of_model(model_of("masking: {name: m}, {dense: {units: 2, inputs: 'm:1'}}", inputs))
            .find("'m' has only one output") != std::string::npos);
}

TEST_CASE("a layer that cannot handle a mask is an error") {
  for (const std::string layer : {"flatten", "conv1d: {filters: 2, kernel_size: 2}", "global_max_pooling1d",
                                  "lstm: {units: 2, return_sequences: true, go_backwards: true}",
                                  "bidirectional: {layer: {gru: {units: 2, return_sequences: true, "
                                  "go_backwards: true}}}"}) {
    CAPTURE(layer);
    CHECK(errors_of_model(model_of(kEmbedding + ", {" + layer + "}"))
              .find("its input has a mask, which 'embedding' creates") != std::string::npos);
  }
}

TEST_CASE("time_distributed passes a mask on, unless its layer reads masks") {
  const std::string distributed = ", {time_distributed: {layer: ";
  CHECK(output_is_masked(graph_from(model_of(kEmbedding + distributed + "{dense: {units: 2}}}}"))));
  const std::string reads = ", {reshape: {target_shape: [5, 2, 2], ignore_mask: true}}, {masking: {name: m}}";
  CHECK(errors_of_model(model_of(kEmbedding + reads + distributed + "{lstm: {units: 2}}}}"))
            .find("its input has a mask, which 'm' creates") != std::string::npos);
}

TEST_CASE("a mask of other axes than a layer's positions is an error, unless the layer creates a new one") {
  const std::string images = kEmbedding + ", {time_distributed: {layer: {reshape: [2, 2]}}}";
  CHECK(errors_of_model(model_of(images + ", {batch_normalization: {}}"))
            .find("a mask of shape 5 does not mark the positions of an input of shape 5x2x2") !=
        std::string::npos);
  const Graph graph = graph_from(model_of(images + ", {masking: {}}"));
  CHECK(graph.spec(graph.mask_of(graph.outputs[0])).shape == Shape{5, 2});
}

TEST_CASE("a layer may ignore a mask, which ends there") {
  const Graph graph =
      graph_from(model_of(kEmbedding + ", {flatten: {ignore_mask: true}}, {dense: {units: 2}}"));
  CHECK_FALSE(output_is_masked(graph));
  CHECK(write_model(graph).to_yaml().find("ignore_mask: true") != std::string::npos);
  const Graph read = graph_from(write_model(graph).to_yaml());
  CHECK(read.nodes[node_named(read, "flatten")].ignores_mask);
  const Graph averaged =
      graph_from(model_of(kEmbedding + ", {global_average_pooling1d: {ignore_mask: true}}"));
  CHECK(averaged.nodes.back().masks.empty());
}

TEST_CASE("a mask that does not fit the steps of a merged value is an error") {
  const std::string inputs = "x: {shape: [5], dtype: int32}, y: [2, 4]";
  const std::string from_x = "embedding: {input_dim: 9, output_dim: 4, mask_zero: true, inputs: x, name: a}";
  CHECK(errors_of_model(model_of(from_x + ", {concatenate: {axis: 1, inputs: [a, y]}}", inputs))
            .find("a mask of shape 5 does not fit an output of shape 7x4") != std::string::npos);
}

TEST_CASE("attention reads the mask of values and keys, and passes on that of queries") {
  const std::string inputs = "x: {shape: [5], dtype: int32}, y: [5, 4]";
  const std::string from_x = "embedding: {input_dim: 9, output_dim: 4, mask_zero: true, inputs: x, name: a}";
  const auto attention = [&](const std::string& reads) {
    return model_of(
        from_x + ", {masking: {inputs: y, name: b}}, {multi_head_attention: {num_heads: 2, inputs: " + reads +
            "}}",
        inputs);
  };
  const Graph graph = graph_from(attention("[a, b]"));
  const GraphNode& node = graph.nodes.back();
  REQUIRE(node.masks.size() == 2);
  CHECK(node.masks[0].node == static_cast<int>(node_named(graph, "a")));
  CHECK(node.masks[1].node == static_cast<int>(node_named(graph, "b")));
  CHECK(node.mask_of_output(0) == node.masks[0]);
  CHECK(errors_of_model(attention("[a, b, a]"))
            .find("the inputs have different masks, which 'b' and 'a' create") != std::string::npos);
}

TEST_CASE("layers that merge inputs with the same mask pass it on, unless an input has no mask") {
  const std::string two =
      kEmbedding + ", {dense: {units: 4, name: a}}, {dense: {units: 4, inputs: embedding, name: b}}, ";
  CHECK(output_is_masked(graph_from(model_of(two + "{add: {inputs: [a, b]}}"))));
  CHECK(output_is_masked(graph_from(model_of(two + "{concatenate: {inputs: [a, b]}}"))));
  const std::string inputs = "x: {shape: [5], dtype: int32}, y: [5, 4]";
  const std::string from_x = "embedding: {input_dim: 9, output_dim: 4, mask_zero: true, inputs: x, name: a}";
  CHECK_FALSE(output_is_masked(graph_from(model_of(from_x + ", {add: {inputs: [a, y]}}", inputs))));
  CHECK(
      errors_of_model(model_of(from_x + ", {masking: {inputs: y, name: b}}, {add: {inputs: [a, b]}}", inputs))
          .find("the inputs have different masks, which 'a' and 'b' create") != std::string::npos);
}

TEST_CASE("an activation after a masked layer has the mask, like its input") {
  const Graph graph = graph_from(model_of(kEmbedding + ", {dense: {units: 4}}, {activation: relu}"));
  CHECK(output_is_masked(graph));
}

}  // namespace dtrain::test
