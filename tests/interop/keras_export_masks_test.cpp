// Tests masks of padding in models that are exported to Keras.
#include <map>

#include <doctest/doctest.h>

#include "exported.h"
#include "interop/keras/export/export.h"
#include "interop/keras/export/graph_layers.h"
#include "interop/keras/export/mask_copies.h"
#include "interop/layer_formats.h"
#include "support/errors.h"
#include "support/temp_dir.h"

using namespace dtrain;

namespace {

/// Returns the error message of the export of a model in which the given layers follow an embedding that
/// masks padding. Returns "" if the export succeeds.
std::string export_error(const std::string& layers) {
  const test::TempDir directory;
  const TestExport exported(
      "inputs: {x: {shape: [5], dtype: int32}}\nlayers: [embedding: {input_dim: 9, "
      "output_dim: 4, mask_zero: true}, " +
      layers + "]\n");
  return test::error_of([&] { export_keras(exported.model, std::nullopt, directory / "m.keras"); });
}

}  // namespace

TEST_CASE("layers do not have the name of Keras's operation on masks") {
  const Graph graph = test::graph_from(
      "inputs: {x: [5, 2]}\nlayers: [{masking: {name: a}}, {dense: {units: 2, name: b}}, {concatenate: "
      "{inputs: [a, b]}}]\n");
  CHECK(keras_layers(graph).back().name == "masked_concatenate");
  const Graph mixed = test::graph_from(
      "inputs: {x: [5, 2], y: [5, 2]}\nlayers: [{masking: {name: a, inputs: [x]}}, {concatenate: "
      "{inputs: [a, y]}}]\n");
  CHECK(keras_layers(mixed).back().name == "masked_concatenate");
  const Graph unmasked =
      test::graph_from("inputs: {x: [5, 2], y: [5, 2]}\nlayers: [{concatenate: {inputs: [x, y]}}]\n");
  CHECK(keras_layers(unmasked).back().name == "concatenate");
}

TEST_CASE("attention reads copies of masked values that other layers read, too") {
  const std::string tokens =
      "inputs: {x: {shape: [5], dtype: int32}}\n"
      "layers: [{embedding: {input_dim: 9, output_dim: 4, mask_zero: true, name: e}}, "
      "{multi_head_attention: {num_heads: 2, key_dim: 2, name: a}}";
  const Graph chain = test::graph_from(tokens + ", {dense: {units: 4}}]\n");
  CHECK(with_mask_copies(chain).nodes.size() == chain.nodes.size());

  // `a` and `b` read e, and `b` and `sum` read a.
  const Graph graph =
      test::graph_from(tokens +
                       ", {multi_head_attention: {num_heads: 2, key_dim: 2, inputs: [a, e], name: b}}, "
                       "{add: {inputs: [a, b], name: sum}}]\n");
  const Graph copied = with_mask_copies(graph);
  std::map<std::string, GraphNode> added;
  for (size_t i = graph.nodes.size(); i < copied.nodes.size(); ++i)
    added.emplace(copied.nodes[i].name, copied.nodes[i]);
  REQUIRE(added.size() == 3);
  const auto reads = [&](const std::string& reader, size_t input) {
    for (const GraphNode& node : copied.nodes)
      if (node.name == reader) return copied.value_name(node.inputs[input]);
    return std::string();
  };
  CHECK(reads("a", 0) == "a_input");
  CHECK(reads("a_input", 0) == "e");
  CHECK(reads("b", 0) == "b_input");
  CHECK(reads("b_input", 0) == "a");
  CHECK(reads("b", 1) == "b_input_2");
  CHECK(reads("b_input_2", 0) == "e");
  CHECK(reads("sum", 0) == "a");
  CHECK(keras_config_of(added.at("a_input").layer).config.dump() == R"({"scale": 1, "offset": 0})");
  CHECK(added.at("a_input").mask_of_output(0) == graph.nodes[1].mask_of_output(0));
}

TEST_CASE("models whose masks Keras would treat in another way are not exported") {
  CHECK(export_error("rms_normalization, {lstm: {units: 2}}")
            .find("RMSNormalization does not pass on the mask") != std::string::npos);
  CHECK(export_error("softmax, {lstm: {units: 2}}").find("use `activation: softmax`") != std::string::npos);
  CHECK(export_error("{lstm: {units: 2, ignore_mask: true}}").find("LSTM uses the mask") !=
        std::string::npos);
  CHECK(export_error("{dense: {units: 3, activation: softmax}}, {lstm: {units: 2}}").empty());
  CHECK(export_error("{bidirectional: {layer: {lstm: {units: 2}}}}").empty());
  CHECK(export_error("batch_normalization, {lstm: {units: 2}}").empty());
  CHECK(export_error("{rms_normalization: {ignore_mask: true}}, {flatten: {}}").empty());
}

TEST_CASE("models that read outputs of attention at padding as data are not exported") {
  const std::string attention = "{multi_head_attention: {num_heads: 2, key_dim: 3, name: a}}, ";
  const auto reader = [&](const std::string& layers) {
    const std::string error = export_error(attention + layers);
    const std::string start =
        "multi_head_attention 'a' cannot be exported to Keras: at padded positions, the outputs of Keras's "
        "attention differ from dtrain's, and ";
    if (error.empty()) return error;
    CHECK(error.starts_with(start));
    return error.substr(std::min(start.size(), error.size()));
  };
  CHECK(reader("{flatten: {ignore_mask: true}}") == "flatten 'flatten' would read these outputs as data");
  CHECK(reader("{dense: 4}, {global_max_pooling1d: {name: m, ignore_mask: true}}") ==
        "global_max_pooling1d 'm' would read these outputs as data");
  CHECK(reader("{group_normalization: {groups: 2}}") ==
        "group_normalization 'group_normalization' would read these outputs as data");
  CHECK(reader("{masking: {}}") == "masking 'masking' would read these outputs as data");
  // These layers either read only positions that are not padding, or keep padded positions separate from the
  // other positions.
  CHECK(reader("global_average_pooling1d").empty());
  CHECK(reader("{dense: 4}, {lstm: {units: 2}}").empty());
  CHECK(reader("{lstm: {units: 2, return_sequences: true}}, {flatten: {ignore_mask: true}}").empty());
  CHECK(reader("{dense: 4}, {multi_head_attention: {num_heads: 1}}").empty());
}
