// Tests that repeated structure in imported models is folded into blocks.
#include "interop/keras/import/fold_blocks.h"

#include <doctest/doctest.h>

#include "config/diagnostics.h"
#include "config/yaml/yaml.h"

namespace dtrain::test {

namespace {

FoldedModel fold(const std::string& yaml) {
  Diagnostics diagnostics;
  const ConfigNode model = parse_yaml(yaml, "model.yaml", diagnostics);
  const std::optional<Graph> graph = parse_model(model, diagnostics);
  diagnostics.throw_if_errors();
  return fold_blocks(model, *graph);
}

std::string dense(const std::string& name, const std::string& more = "") {
  return "  - dense: {units: 4, name: " + name + more + "}\n";
}

std::string residual(const std::string& prefix, const std::string& input) {
  return dense(prefix + "_wide", ", activation: relu, inputs: " + input) +
         "  - layer_normalization: {name: " + prefix + "_norm}\n" + dense(prefix + "_narrow") +
         "  - add: {name: " + prefix + "_sum, inputs: [" + prefix + "_narrow, " + input + "]}\n";
}

const std::string kInput = "inputs: {x: [4]}\nlayers:\n";

}  // namespace

TEST_CASE("layers with a common name prefix become a block and keep the rest of their names") {
  const FoldedModel folded =
      fold(kInput + dense("stem") + residual("stage1", "stem") + residual("stage2", "stage1_sum") +
           residual("stage3", "stage2_sum") + dense("head"));
  CHECK(folded.model.to_yaml() ==
        "inputs: {x: [4]}\n"
        "blocks:\n"
        "  stage:\n"
        "    layers:\n"
        "      - dense: {units: 4, activation: relu, name: wide}\n"
        "      - layer_normalization: {name: norm}\n"
        "      - dense: {units: 4, name: narrow}\n"
        "      - add: {name: sum, inputs: [narrow, input]}\n"
        "layers:\n"
        "  - dense: {units: 4, name: stem}\n"
        "  - stage: {name: stage, repeat: 3}\n"
        "  - dense: {units: 4, name: head}\n");
  CHECK(folded.names.at("stage2_narrow") == "stage_1/narrow");
  CHECK(folded.uses == std::vector<std::string>{"stage: stage1_wide to stage3_sum, 3 times 4 layers"});
}

TEST_CASE("automatic names are omitted, and a block begins with a layer that has weights") {
  std::string layers = dense("dense") + "  - activation: {activation: relu, name: activation}\n";
  for (const char* number : {"1", "2", "3", "4"})
    layers += dense(std::string("dense_") + number) + "  - batch_normalization: {name: norm_" + number +
              "}\n" + "  - activation: {activation: relu, name: activation_" + number + "}\n";
  const FoldedModel folded = fold(kInput + layers + "  - dense: {units: 2, name: last}\n");
  CHECK(folded.model.find("blocks")->to_yaml() ==
        "block:\n"
        "  layers: [{dense: {units: 4}}, batch_normalization, {activation: {activation: relu}}]\n");
  CHECK(folded.names.at("dense_4") == "block_3/dense");
  CHECK_FALSE(folded.names.contains("dense"));
}

TEST_CASE("equal layers later in the model use the same block") {
  const FoldedModel folded = fold(kInput + residual("a", "x") + residual("b", "a_sum") +
                                  residual("c", "b_sum") + "  - dropout: {rate: 0.5, name: drop}\n" +
                                  residual("d", "drop") + residual("e", "d_sum") + dense("head"));
  CHECK(folded.uses == std::vector<std::string>{"a: a_wide to c_sum, 3 times 4 layers",
                                                "a_1: d_wide to e_sum, 2 times 4 layers"});
  CHECK(folded.names.at("e_sum").ends_with("/sum"));
}

TEST_CASE("structure that a block cannot express is unchanged") {
  const std::string three = residual("a", "x") + residual("b", "a_sum") + residual("c", "b_sum");
  const auto is_flat = [](const std::string& layers, const std::string& ends = "") {
    return fold(kInput + layers + ends).model.find("blocks") == nullptr;
  };
  CHECK_FALSE(is_flat(three + dense("head")));
  // A layer outside the copies reads a value from inside a copy, or a value that is passed from one copy to
  // the next.
  CHECK(is_flat(three + "  - add: {name: s, inputs: [a_norm, b_norm]}\n" +
                "  - add: {name: t, inputs: [s, c_sum]}\n"));
  CHECK(is_flat(three + "  - add: {name: s, inputs: [a_sum, b_sum, c_sum]}\n"));
  // Some values within the copies are outputs of the model.
  CHECK(is_flat(three + dense("head"), "outputs: [a_norm, b_norm, c_norm, head]\n"));
  // Layers share weights.
  CHECK(is_flat(three +
                "  - dense: {shared_with: a_wide, name: s}\n  - dense: {shared_with: b_wide, name: t}\n"
                "  - dense: {shared_with: c_wide, name: u}\n" +
                dense("head")));
  // There are too few layers for a block.
  CHECK(is_flat(dense("dense") + dense("dense_1") + dense("dense_2") + dense("head")));
}

}  // namespace dtrain::test
