// Conversion to ONNX operators, and the interpreter that checks them. tests/keras tests them with ONNX
// Runtime.
#include <algorithm>
#include <array>
#include <cmath>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.h"
#include "exported.h"
#include "interop/check_probes.h"
#include "interop/layer_formats.h"
#include "interop/onnx/export.h"
#include "interop/onnx/interpreter.h"

using namespace dtrain;

namespace {

int64_t count(const OnnxModel& model, const std::string& op) {
  return std::count_if(model.nodes.begin(), model.nodes.end(),
                       [&](const OnnxNode& node) { return node.op == op; });
}

std::string ops(const OnnxModel& model) {
  std::string all;
  for (const OnnxNode& node : model.nodes) all += (all.empty() ? "" : " ") + node.op;
  return all;
}

OnnxModel onnx_of(const std::string& yaml) {
  const TestExport exported(yaml);
  return onnx_model(exported.model, {});
}

/// Returns the output of a one-layer model for one sample.
std::vector<float> answer(const std::string& layer, const std::string& input, std::vector<float> values) {
  const TestExport exported("inputs: {x: " + input + "}\nlayers: [" + layer + "]\n");
  return run_onnx(onnx_model(exported.model, {}), 1, {std::move(values)})[0];
}

}  // namespace

TEST_CASE("every kind of layer can be exported") {
  for (const LayerFormats& row : all_layer_formats()) {
    CAPTURE(row.kind);
    CHECK(row.onnx);
    CHECK(row.torch);
  }
}

TEST_CASE("time_distributed reshapes positions to samples for its layer") {
  CHECK(ops(onnx_of("{inputs: {x: [5, 3]}, layers: [{time_distributed: {layer: {dense: {units: 2}}}}]}")) ==
        "Reshape Gemm Reshape");
  CHECK(ops(onnx_of("{inputs: {x: [5, 4, 4, 3]}, layers: [{time_distributed: {layer: max_pooling2d}}]}")) ==
        "Reshape Transpose MaxPool Transpose Reshape");
  CHECK(answer("time_distributed: {layer: {max_pooling2d: {pool_size: [2, 1]}}}", "[2, 2, 1, 1]",
               {1, 2, 4, 3}) == std::vector<float>{2, 4});
}

TEST_CASE("dot is a product of matrices") {
  CHECK(ops(onnx_of("{inputs: {x: [3, 2]}, layers: [{dot: {inputs: [x, x], axes: -1}}]}")) ==
        "Transpose MatMul");
  CHECK(answer("dot: {inputs: [x, x], axes: 1}", "[3, 2]", {1, 2, 3, 4, 5, 6}) ==
        std::vector<float>{35, 44, 44, 56});
  CHECK(answer("dot: {inputs: [x, x], axes: 1}", "[2]", {3, 4}) == std::vector<float>{25});
  CHECK(answer("dot: {inputs: [x, x], axes: 1, normalize: true}", "[2]", {3, 4})[0] == doctest::Approx(1));
  // The product of a vector and an array with three axes has two axes.
  const std::string yaml =
      "{inputs: {x: [2], y: [3, 2, 2]}, layers: [{dot: {axes: [1, 2], inputs: [x, y]}}]}";
  const TestExport exported(yaml);
  const OnnxModel model = onnx_model(exported.model, {});
  CHECK(ops(model) == "Reshape Transpose Reshape Transpose MatMul Reshape");
  CHECK(run_onnx(model, 1, {{1, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}})[0] ==
        std::vector<float>{7, 10, 19, 22, 31, 34});
}

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
        "gru 'gru' cannot be exported to ONNX yet: it has other activations than Keras's defaults");
}

namespace {

/// Compares a layer whose input `x` has 5 steps, of which the first and the third are masked, with a layer of
/// the same weights whose input `y` has the other steps only. Checks the outputs of valid steps, and returns
/// those of the masked steps.
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
    CHECK(std::none_of(others.begin() + 3, others.end(),
                       [](float x) { return x == 0; }));  // the state of step 1
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
  CHECK_THROWS_WITH_AS(onnx_model(exported.model, {.float16 = true}),
                       doctest::Contains("float16 cannot count its 2049 masked steps, but at most 2048"),
                       UserError);
}

TEST_CASE("squares of norms fit float16") {
  const TestExport rows("inputs: {x: [5, 2]}\nlayers: [unit_normalization]\n");
  const std::vector<float> x = {0.0003f, 0.0004f, 6e-8f, 0, 0, 0, 3e4f, 4e4f, -0.3f, 0.4f};
  const std::vector<float> unit = {0.6f, 0.8f, 1, 0, 0, 0, 0.6f, 0.8f, -0.6f, 0.8f};
  for (const int64_t opset : {13, 17, 18}) {
    const auto found = run_onnx(onnx_model(rows.model, {.opset = opset, .float16 = true}), 1, {x})[0];
    REQUIRE(found.size() == unit.size());
    for (size_t i = 0; i < unit.size(); ++i) CHECK(std::abs(found[i] - unit[i]) < 2e-3f);
  }
  const TestExport mean("inputs: {x: [4, 2]}\nlayers: [rms_normalization: {epsilon: 1e-8}]\n");
  const std::vector<float> of_mean = {300, 400, 3e4f, -4e4f, 3e-4f, 4e-4f, 0, 0};
  const std::vector<float> root_mean_square = {0.8485f, 1.1314f, 0.8485f, -1.1314f, 0.8165f, 1.0887f, 0, 0};
  const auto found = run_onnx(onnx_model(mean.model, {.float16 = true}), 1, {of_mean})[0];
  REQUIRE(found.size() == root_mean_square.size());
  for (size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] - root_mean_square[i]) < 2e-3f);
  const TestExport products(
      "inputs: {x: [1, 2], y: [1, 2]}\nlayers: [dot: {inputs: [x, y], axes: -1, "
      "normalize: true}]\n");
  const auto cosine = [&](const OnnxOptions& options, std::vector<float> a, std::vector<float> b) {
    return run_onnx(onnx_model(products.model, options), 1, {std::move(a), std::move(b)})[0][0];
  };
  CHECK(cosine({.float16 = true}, {1e-4f, 0}, {3e-5f, 4e-5f}) == doctest::Approx(0.6).epsilon(5e-3));
  CHECK(cosine({.float16 = true}, {0, 0}, {300, 400}) == 0);
  // Norms below Keras's epsilon, 1e-7, are replaced by it.
  CHECK(cosine({}, {1, 0}, {3e-8f, 4e-8f}) == doctest::Approx(0.3));
  CHECK(cosine({}, {1e-30f, 0}, {1, 0}) * 1e23f == doctest::Approx(1));
}

TEST_CASE("float16 holds causal masks") {
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
  // Rows of padding: all, none, the first, and steps in the middle.
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
  // Without any valid step, the output is the last bias, which is 0.
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

TEST_CASE("images are transposed only at inputs and before flattening") {
  CHECK(ops(onnx_of(R"(
inputs: {x: [8, 8, 3]}
layers:
  - conv2d: {filters: 4, kernel_size: 3, activation: relu}
  - batch_normalization
  - dropout: 0.5
  - max_pooling2d: {pool_size: 2}
  - flatten
  - dense: {units: 2}
)")) == "Transpose Conv Relu BatchNormalization MaxPool Transpose Flatten Gemm");
}

TEST_CASE("each sequence layer is one node between two transpositions") {
  const OnnxModel model = onnx_of(R"(
inputs: {x: [12, 3]}
layers:
  - zero_padding1d: [1, 2]
  - conv1d: {filters: 4, kernel_size: 3, padding: causal, dilation_rate: 2}
  - prelu: {shared_axes: 1}
  - batch_normalization
  - max_pooling1d: {pool_size: 2, strides: 1, padding: same}
  - average_pooling1d
  - upsampling1d: 2
  - cropping1d: 1
  - global_max_pooling1d: {keepdims: true, name: largest}
  - global_average_pooling1d: {inputs: cropping1d, name: mean}
outputs: [largest, mean]
)");
  CHECK(ops(model) ==
        "Transpose Pad Conv PRelu BatchNormalization MaxPool AveragePool Resize Slice GlobalMaxPool "
        "GlobalAveragePool Flatten Transpose");
  const auto node = [&](const char* op) {
    return *std::find_if(model.nodes.begin(), model.nodes.end(),
                         [&](const OnnxNode& one) { return one.op == op; });
  };
  const auto shape_of = [&](const std::string& initializer) {
    return std::find_if(model.initializers.begin(), model.initializers.end(),
                        [&](const OnnxTensor& one) { return one.name == initializer; })
        ->shape;
  };
  CHECK(shape_of(node("Conv").inputs[1]) == Shape{4, 3, 3});
  CHECK(shape_of(node("PRelu").inputs[1]) == Shape{4, 1});
}

TEST_CASE("a value is transposed once for all its readers") {
  const OnnxModel model = onnx_of(R"(
inputs: {x: [8, 8, 3]}
layers:
  - conv2d: {filters: 3, kernel_size: 3, padding: same, name: a}
  - conv2d: {filters: 3, kernel_size: 1, inputs: x, name: b}
  - add: {inputs: [a, b]}
)");
  CHECK(count(model, "Transpose") == 2);  // only of the input and of the output
}

TEST_CASE("layers that share weights share initializers") {
  const OnnxModel model = onnx_of(R"(
inputs: {a: [4], b: [4]}
layers:
  - dense: {units: 3, inputs: a, name: one}
  - dense: {shared_with: one, inputs: b, name: two}
  - add: {inputs: [one, two]}
)");
  CHECK(count(model, "Gemm") == 2);
  CHECK(model.initializers.size() == 2);
}

TEST_CASE("an embedding and a dense layer with its weights share an initializer") {
  const OnnxModel model = onnx_of(R"(
inputs: {x: {shape: [4], dtype: int32}}
layers:
  - embedding: {input_dim: 9, output_dim: 3, name: token}
  - dense: {shared_with: token}
)");
  CHECK(ops(model) == "Gather Transpose MatMul");
  CHECK(model.initializers.size() == 1);
}

TEST_CASE("an output that is an input or a duplicate has a separate name") {
  const OnnxModel model = onnx_of(R"(
inputs: {x: [4]}
layers:
  - dropout: {rate: 0.5, name: same}
  - dense: {units: 2, name: last}
outputs: [same, last]
)");
  CHECK(ops(model) == "Gemm Identity");
  CHECK(model.outputs[0].name == "same");
  CHECK(model.outputs[1].name == "last");
}

TEST_CASE("the reference loops compute the operators as specified") {
  CHECK(answer("activation: {activation: {relu: {max_value: 2, negative_slope: 0.5, threshold: 1}}}", "[4]",
               {-1, 1, 1.5, 3}) == std::vector<float>{-1, 0, 1.5, 2});
  CHECK(answer("zero_padding2d: [[1, 0], [0, 1]]", "[1, 2, 1]", {1, 2}) ==
        std::vector<float>{0, 0, 0, 1, 2, 0});
  CHECK(answer("cropping2d: [[1, 0], [0, 1]]", "[2, 3, 1]", {1, 2, 3, 4, 5, 6}) == std::vector<float>{4, 5});
  CHECK(answer("average_pooling2d: {pool_size: 2, strides: 1, padding: same}", "[2, 2, 1]", {1, 2, 3, 4}) ==
        std::vector<float>{2.5, 3, 3.5, 4});  // padding does not count
  CHECK(answer("max_pooling2d: {pool_size: 2}", "[2, 2, 2]", {1, 8, 2, 7, 3, 6, 4, 5}) ==
        std::vector<float>{4, 8});
  CHECK(answer("global_average_pooling2d", "[1, 2, 2]", {1, 2, 3, 4}) == std::vector<float>{2, 3});
  CHECK(answer("conv3d: {filters: 1, kernel_size: [2, 1, 2], use_bias: false, kernel_initializer: ones}",
               "[2, 1, 3, 1]", {1, 2, 4, 10, 20, 40}) == std::vector<float>{33, 66});
  CHECK(answer("max_pooling3d: {strides: 1, padding: same}", "[2, 1, 2, 1]", {1, 4, 3, 2}) ==
        std::vector<float>{4, 4, 3, 2});
  CHECK(answer("average_pooling3d: {strides: 1, padding: same}", "[2, 1, 2, 1]", {1, 4, 3, 2}) ==
        std::vector<float>{2.5, 3, 2.5, 2});  // padding does not count
  CHECK(answer("zero_padding3d: [[1, 0], 0, [0, 1]]", "[1, 1, 2, 1]", {1, 2}) ==
        std::vector<float>{0, 0, 0, 1, 2, 0});
  CHECK(answer("cropping3d: [[1, 0], 0, [0, 1]]", "[2, 1, 2, 1]", {1, 2, 3, 4}) == std::vector<float>{3});
  CHECK(answer("upsampling3d: [2, 1, 2]", "[1, 1, 2, 1]", {1, 2}) ==
        std::vector<float>{1, 1, 2, 2, 1, 1, 2, 2});
  CHECK(answer("conv2d: {filters: 1, kernel_size: [1, 2], use_bias: false, kernel_initializer: ones}",
               "[1, 3, 1]", {1, 2, 4}) == std::vector<float>{3, 6});
  CHECK(
      answer(
          "conv1d: {filters: 1, kernel_size: 2, padding: causal, use_bias: false, kernel_initializer: ones}",
          "[3, 1]", {1, 2, 4}) == std::vector<float>{1, 3, 6});
  CHECK(answer("average_pooling1d: {pool_size: 2, strides: 1, padding: same}", "[3, 1]", {1, 2, 4}) ==
        std::vector<float>{1.5, 3, 4});
  CHECK(answer("prelu: {alpha_initializer: {constant: 0.5}}", "[2, 2]", {-1, 2, -3, 0}) ==
        std::vector<float>{-0.5, 2, -1.5, 0});
  CHECK(answer("unit_normalization", "[2, 2]", {3, 4, 0, -2}) == std::vector<float>{0.6f, 0.8f, 0, -1});
  CHECK(answer("masking: {mask_value: 2}", "[3, 2]", {2, 2, 2, 1, 0, 3}) ==
        std::vector<float>{0, 0, 2, 1, 0, 3});
  CHECK(answer("rescaling: {scale: [2, 3], offset: [1, 0]}", "[2, 2]", {1, 2, 3, 4}) ==
        std::vector<float>{3, 6, 7, 12});
  const std::vector<float> root_mean_square = answer("rms_normalization", "[2]", {1, 7});
  CHECK(root_mean_square[0] == doctest::Approx(0.2));
  CHECK(root_mean_square[1] == doctest::Approx(1.4));
  const std::vector<float> of_groups =
      answer("group_normalization: {groups: 2}", "[1, 2, 4]", {-1, 1, 10, 20, -1, 1, 10, 20});
  for (size_t i = 0; i < 8; ++i)  // the variances are 1 and 25, to which epsilon is added
    CHECK(of_groups[i] ==
          doctest::Approx(i % 4 < 2 ? (i % 2 ? 0.9995 : -0.9995) : (i % 2 ? 0.99998 : -0.99998)));
  CHECK(answer("upsampling2d: {size: [1, 2], interpolation: bilinear}", "[1, 2, 1]", {1, 5}) ==
        std::vector<float>{1, 2, 4, 5});
  CHECK(answer("resizing: {height: 3, width: 2, interpolation: nearest}", "[2, 3, 1]", {1, 5, 2, 8, 3, 9}) ==
        std::vector<float>{1, 2, 8, 9, 8, 9});
  const std::vector<float> smaller =
      answer("resizing: {height: 1, width: 2}", "[2, 3, 1]", {1, 5, 2, 8, 3, 9});
  REQUIRE(smaller.size() == 2);
  CHECK(smaller[0] == doctest::Approx(4.375));
  CHECK(smaller[1] == doctest::Approx(5.125));
  // floor(7 * (31 / 7)) is 30 if the scale is not rounded up.
  CHECK(answer("resizing: {height: 1, width: 31}", "[1, 7, 1]", std::vector<float>(7, 2)) ==
        std::vector<float>(31, 2));
  CHECK(answer("conv2d_transpose: {filters: 1, kernel_size: [1, 2], strides: [1, 3], use_bias: false, "
               "kernel_initializer: ones}",
               "[1, 2, 1]", {1, 2})
            .size() == 6);
}

TEST_CASE("the reference loops repeat arrays and pixels") {
  OnnxModel model;
  model.inputs = {{"x", OnnxType::float32, {1, 1, 2}}};
  model.initializers = {{"scales", OnnxType::float32, {4}, {1, 1, 2, 3}, {}},
                        {"times", OnnxType::int64, {4}, {}, {1, 2, 1, 1}}};
  model.nodes = {
      {"Resize",
       "a",
       {"x", "", "scales"},
       {"large"},
       {{"mode", std::string("nearest")}, {"coordinate_transformation_mode", std::string("asymmetric")}}},
      {"Tile", "b", {"x", "times"}, {"twice"}, {}}};
  model.outputs = {{"large", OnnxType::float32, {1, 2, 6}}, {"twice", OnnxType::float32, {2, 1, 2}}};
  const auto found = run_onnx(model, 1, {{1, 2}});
  CHECK(found[0] == std::vector<float>{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2});
  CHECK(found[1] == std::vector<float>{1, 2, 1, 2});
}

TEST_CASE("a target's unit and probabilities are part of the exported model") {
  TestExport exported("inputs: {x: [2]}\nlayers: [activation: {activation: linear, name: last}]\n");
  exported.model.outputs[0].scale = {{10, 100}, {1, 2}};
  CHECK(run_onnx(onnx_model(exported.model, {}), 1, {{1, 2}})[0] == std::vector<float>{11, 202});
  exported.model.outputs[0] = {"last", ExportedOutput::Finish::softmax, {}};
  CHECK(run_onnx(onnx_model(exported.model, {}), 1, {{3, 3}})[0] == std::vector<float>{0.5, 0.5});
  exported.model.outputs[0] = {"last", ExportedOutput::Finish::sigmoid, {}};
  CHECK(run_onnx(onnx_model(exported.model, {}), 1, {{0, 100}})[0] == std::vector<float>{0.5, 1});
}

TEST_CASE("stored numbers are converted to inputs inside the model") {
  TestExport exported("inputs: {x: [2]}\nlayers: [activation: {activation: linear, name: last}]\n");
  exported.model.inputs[0] = {{"x", {1, 2}, DType::float32}, {5, 6}, {2, 3}};
  const OnnxModel model = onnx_model(exported.model, {});
  CHECK(model.inputs[0].sample == Shape{1, 2});
  CHECK(run_onnx(model, 1, {{6, 7}})[0] == std::vector<float>{2, 3});
}

TEST_CASE("weights are rounded to float16, inputs and outputs stay float32") {
  const TestExport exported("inputs: {x: [2]}\nlayers: [dense: {units: 1, use_bias: false}]\n");
  const OnnxModel model = onnx_model(exported.model, {.float16 = true});
  CHECK(ops(model) == "Cast Gemm Cast");
  CHECK(model.inputs[0].type == OnnxType::float32);
  CHECK(model.outputs[0].type == OnnxType::float32);
  CHECK(model.initializers[0].type == OnnxType::float16);
  CHECK(onnx_raw_data(model.initializers[0]).size() == 4);
}

TEST_CASE("an exported model with different results is an error") {
  TestExport exported("inputs: {x: [2]}\nlayers: [dense: {units: 1, name: last}]\n");
  exported.model.probes = {1, {{1, 2}}, {{3}}};
  const auto check = [&](float found) {
    check_probes(exported.model, {{found}}, ProbeTolerance::float32, "m.onnx");
  };
  CHECK_NOTHROW(check(3));
  CHECK_NOTHROW(check(3.0002f));
  CHECK_THROWS_WITH_AS(check(3.001f), doctest::Contains("m.onnx: the exported model gives another 'last'"),
                       Error);
  CHECK_THROWS_AS(check(std::nanf("")), Error);
  exported.model.probes.outputs[0][0] = std::nanf("");
  CHECK_NOTHROW(check(std::nanf("")));
  CHECK_THROWS_AS(check(1), Error);
  CHECK_THROWS_AS(check_probes(exported.model, {{1, 2}}, ProbeTolerance::float32, "m.onnx"), Error);
}
