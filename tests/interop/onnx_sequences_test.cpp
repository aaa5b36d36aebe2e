// Tests the conversion of recurrent layers, attention and masks of steps to ONNX operators.
#include <algorithm>
#include <array>
#include <cmath>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.h"
#include "onnx_models.h"

using namespace dtrain;
using namespace dtrain::test;

TEST_CASE("recurrent layers are one node, with ONNX's order of gates") {
  CHECK(ops(onnx_of("{inputs: {x: [5, 3]}, layers: [{lstm: {units: 2}}]}")) ==
        "Transpose LSTM Slice Squeeze");
  CHECK(ops(onnx_of("{inputs: {x: [5, 3]}, layers: [{gru: {units: 2, return_sequences: true}}]}")) ==
        "Transpose GRU Squeeze Transpose");
  CHECK(ops(onnx_of("{inputs: {x: [5, 3]}, layers: [{simple_rnn: {units: 2, return_sequences: true, "
                    "go_backwards: true}}]}")) == "Transpose RNN Squeeze Gather Transpose");
  const TestExport exported("{inputs: {x: [5, 1]}, layers: [{lstm: {units: 1}}]}");
  const OnnxModel model = onnx_model(exported.model, {});
  const std::span<const float> kernel = exported.model.values(1, 0), bias = exported.model.values(1, 2);
  REQUIRE(model.initializers.size() >= 3);
  CHECK(model.initializers[0].shape == Shape{1, 4, 1});
  CHECK(model.initializers[0].floats == std::vector<float>{kernel[0], kernel[3], kernel[1], kernel[2]});
  CHECK(model.initializers[2].shape == Shape{1, 8});
  CHECK(model.initializers[2].floats == std::vector<float>{bias[0], bias[3], bias[1], bias[2], 0, 0, 0, 0});
}

TEST_CASE("attention is products and a softmax") {
  CHECK(
      ops(onnx_of("{inputs: {x: [5, 4]}, layers: [{multi_head_attention: {num_heads: 2, causal: true}}]}")) ==
      "MatMul Add Reshape MatMul Add Reshape MatMul Add Reshape Transpose Transpose MatMul Mul Add Softmax "
      "Transpose MatMul Transpose Reshape MatMul Add");
}

TEST_CASE("calls of one recurrent layer share its weights") {
  const OnnxModel model = onnx_of(R"(
inputs: {x: [5, 3], y: [4, 3]}
layers:
  - gru: {units: 2, inputs: x, name: one}
  - gru: {shared_with: one, inputs: y, name: two}
  - concatenate: {inputs: [one, two]}
)");
  CHECK(count(model, "GRU") == 2);
  CHECK(std::count_if(model.initializers.begin(), model.initializers.end(),
                      [](const OnnxTensor& tensor) { return tensor.integers.empty(); }) == 3);
}

TEST_CASE("recurrent layers that cannot be exported say why") {
  const auto refused = [](const std::string& layers) {
    try {
      onnx_of("{inputs: {x: [5, 3]}, layers: [" + layers + "]}");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("exported");
  };
  CHECK(refused("lstm: {units: 2, return_state: true}") ==
        "lstm 'lstm' cannot be exported to ONNX yet: it has return_state");
  CHECK(refused("gru: {units: 2, recurrent_activation: hard_sigmoid}") ==
        "gru 'gru' cannot be exported to ONNX yet: its activations are not Keras's defaults");
}

namespace {

/// Compares two layers with the same weights. The input `x` of the first layer has 5 steps, of which the
/// first and the third are masked; the input `y` of the second layer has only the other steps. Checks the
/// outputs of valid steps, and returns the outputs of masked steps.
std::vector<float> masked_outputs(const std::string& kind, const std::string& options, bool sequences) {
  CAPTURE(kind);
  CAPTURE(options);
  const TestExport exported(fmt::format(
      "inputs: {{x: [5, 2], y: [3, 2]}}\nlayers:\n  - masking: {{inputs: x}}\n  - {0}: {{name: one, {1}}}\n"
      "  - {0}: {{shared_with: one, inputs: y, name: two}}\noutputs: [one, two]\n",
      kind, options));
  const auto found =
      run_onnx(onnx_model(exported.model, {}), 1, {{0, 0, 1, 2, 0, 0, 3, -1, 0.5, 1}, {1, 2, 3, -1, 0.5, 1}});
  const std::vector<float>&one = found[0], &two = found[1];
  if (!sequences) {
    REQUIRE(one.size() == two.size());
    for (size_t i = 0; i < one.size(); ++i) CHECK(one[i] == doctest::Approx(two[i]));
    return {};
  }
  REQUIRE(3 * one.size() == 5 * two.size());
  const size_t units = one.size() / 5;
  const std::array<size_t, 3> valid = {1, 3, 4};
  for (size_t t = 0; t < valid.size(); ++t)
    for (size_t i = 0; i < units; ++i)
      CHECK(one[valid[t] * units + i] == doctest::Approx(two[t * units + i]));
  std::vector<float> others(one.begin(), one.begin() + static_cast<ptrdiff_t>(units));
  others.insert(others.end(), one.begin() + static_cast<ptrdiff_t>(2 * units),
                one.begin() + static_cast<ptrdiff_t>(3 * units));
  return others;
}

}  // namespace

TEST_CASE("masked steps keep the state of recurrent layers") {
  for (const char* const kind : {"lstm", "gru", "simple_rnn"}) {
    masked_outputs(kind, "units: 3", false);
    masked_outputs(kind, "units: 3, go_backwards: true", false);
    const std::vector<float> others = masked_outputs(kind, "units: 3, return_sequences: true", true);
    REQUIRE(others.size() == 6);
    CHECK(std::all_of(others.begin(), others.begin() + 3, [](float x) { return x == 0; }));
    // At the masked step 2, the state is still the state of step 1.
    CHECK(std::none_of(others.begin() + 3, others.end(), [](float x) { return x == 0; }));
  }
  for (const char* const mode : {"concat", "mul", "ave"}) {
    const std::string options = fmt::format("merge_mode: {}, layer: {{gru: {{units: 2", mode);
    masked_outputs("bidirectional", options + "}}", false);
    const std::vector<float> others =
        masked_outputs("bidirectional", options + ", return_sequences: true}}", true);
    CHECK(std::all_of(others.begin(), others.end(), [](float x) { return x == 0; }));
  }
}

TEST_CASE("float16 cannot count many masked steps") {
  const TestExport exported("inputs: {x: [2049, 1]}\nlayers: [masking, lstm: {units: 1}]\n");
  CHECK_THROWS_WITH_AS(
      onnx_model(exported.model, {.float16 = true}),
      doctest::Contains("float16 can count at most 2048 masked steps, but the layer has 2049"), UserError);
}

TEST_CASE("float16 can represent causal masks") {
  const TestExport exported(
      "inputs: {x: [4, 2]}\nlayers: [multi_head_attention: {num_heads: 1, causal: true}]\n");
  CHECK_NOTHROW(onnx_model(exported.model, {.float16 = true}));
}

TEST_CASE("attention is one node in opset 23") {
  CHECK(
      ops(onnx_model(TestExport("inputs: {x: [5, 4]}\nlayers: [multi_head_attention: {num_heads: 4, key_dim: "
                                "2, num_key_value_heads: 2, causal: true}]\n")
                         .model,
                     {.opset = 23})) == "MatMul Add MatMul Add MatMul Add Attention MatMul Add");
  // One row is padding only, one has no padding, one begins with padding, and one has padding in the middle.
  const std::vector<float> steps = {0, 0, 0, 0, 0, 0, 0, 0,  1, 2, -1, 3, 2, 1, 0.5f, 1,
                                    0, 0, 1, 3, 2, 2, 1, -2, 3, 1, 0,  0, 0, 0, 2,    1};
  for (const char* const options :
       {"num_heads: 2, key_dim: 3", "num_heads: 2, key_dim: 3, causal: true",
        "num_heads: 2, key_dim: 4, rotary: {}",
        "num_heads: 4, key_dim: 2, num_key_value_heads: 2, causal: true, rotary: {}",
        "num_heads: 4, key_dim: 2, value_dim: 3, num_key_value_heads: 1, inputs: [other, masked]",
        "num_heads: 2, key_dim: 3, inputs: [other, masked], causal: true"})
    for (const char* const reader : {"masking: {name: masked, inputs: x}",
                                     "activation: {activation: linear, name: masked, inputs: x}"}) {
      CAPTURE(options);
      CAPTURE(reader);
      const TestExport exported(
          fmt::format("inputs: {{x: [4, 2], other: [3, 5]}}\nlayers: [{0}, "
                      "multi_head_attention: {{{1}, name: last}}, dense: {{units: 1, inputs: other, name: "
                      "unused}}]\noutputs: [last, unused]\n",
                      reader, options));
      std::vector<float> other;
      for (int i = 0; i < 4 * 3 * 5; ++i) other.push_back(std::sin(static_cast<float>(i)));
      const auto answers = [&](int64_t opset) {
        const OnnxModel model = onnx_model(exported.model, {.opset = opset});
        CHECK(count(model, "Attention") == (opset == 23 ? 1 : 0));
        return run_onnx(model, 4, {steps, other})[0];
      };
      const std::vector<float> node = answers(23), products = answers(17);
      REQUIRE(node.size() == products.size());
      for (size_t i = 0; i < node.size(); ++i) CHECK(std::abs(node[i] - products[i]) < 1e-5f);
    }
}

TEST_CASE("attention does not see masked steps") {
  masked_outputs("multi_head_attention", "num_heads: 2, key_dim: 3", true);
  masked_outputs("multi_head_attention", "num_heads: 2, key_dim: 3, causal: true", true);
  // If no step is valid, the output consists of the bias of the output projection, which is 0.
  CHECK(answer("masking: {}, multi_head_attention: {num_heads: 1}", "[2, 2]", {0, 0, 0, 0}) ==
        std::vector<float>{0, 0, 0, 0});
}

TEST_CASE("masked steps do not count in a mean") {
  const std::string layers = "masking: {}, global_average_pooling1d: {}";
  CHECK(answer(layers, "[3, 2]", {2, 4, 0, 0, 4, 8}) == std::vector<float>{3, 6});
  CHECK(answer(layers, "[2, 2]", {0, 0, 0, 0}) == std::vector<float>{0, 0});
  CHECK(answer("masking: {}, global_average_pooling1d: {keepdims: true}", "[3, 1]", {2, 0, 4}) ==
        std::vector<float>{3});
  const TestExport exported(
      "inputs: {x: {shape: [4], dtype: int32}}\nlayers: [embedding: {input_dim: 3, output_dim: 1, mask_zero: "
      "true}, global_average_pooling1d]\n");
  const std::span<const float> rows = exported.model.values(1, 0);
  const std::vector<float> mean = run_onnx(onnx_model(exported.model, {}), 1, {{0, 2, 0, 1}})[0];
  CHECK(mean[0] == doctest::Approx((rows[1] + rows[2]) / 2));
  // A mask that no layer reads adds no nodes.
  CHECK(ops(onnx_of("{inputs: {x: {shape: [4], dtype: int32}}, layers: [{embedding: {input_dim: 3, "
                    "output_dim: 1, mask_zero: true}}]}")) == "Gather");
}
