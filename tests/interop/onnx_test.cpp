// Tests the conversion to ONNX operators. onnx_sequences_test.cpp tests recurrent layers, attention and
// masks, and onnx_interpreter_test.cpp tests the interpreter that checks exported models. tests/keras runs
// exported models in ONNX Runtime.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.h"
#include "interop/check_probes.h"
#include "interop/layer_formats.h"
#include "onnx_models.h"

using namespace dtrain;
using namespace dtrain::test;

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

TEST_CASE("the extents times the scales of a bilinear resizing, rounded down, are the new extents") {
  const OnnxModel model = onnx_of("{inputs: {x: [3, 7, 1]}, layers: [{resizing: {height: 14, width: 31}}]}");
  std::vector<double> extents;
  for (const OnnxNode& node : model.nodes)
    for (const OnnxTensor& scales : model.initializers)
      if (node.op == "Resize" && scales.name == node.inputs[2])
        extents = {3 * static_cast<double>(scales.floats[2]), 7 * static_cast<double>(scales.floats[3])};
  REQUIRE(extents.size() == 2);
  CHECK(std::floor(extents[0]) == 14);
  CHECK(std::floor(extents[1]) == 31);
}

TEST_CASE("the squares of norms do not overflow in float16") {
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
  // Norms below Keras's epsilon, 1e-7, are replaced by epsilon.
  CHECK(cosine({}, {1, 0}, {3e-8f, 4e-8f}) == doctest::Approx(0.3));
  CHECK(cosine({}, {1e-30f, 0}, {1, 0}) * 1e23f == doctest::Approx(1));
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

TEST_CASE("convolutions have the attribute group if they have several groups") {
  const OnnxModel model = onnx_of(R"(
inputs: {x: [8, 8, 4]}
layers:
  - conv2d: {filters: 6, kernel_size: 3, groups: 2, use_bias: false}
  - conv2d: {filters: 2, kernel_size: 1, groups: 1, use_bias: false}
)");
  const auto group_of = [](const OnnxNode& node) {
    const auto found = std::find_if(node.attributes.begin(), node.attributes.end(),
                                    [](const auto& attribute) { return attribute.first == "group"; });
    return found == node.attributes.end() ? int64_t{0} : std::get<int64_t>(found->second);
  };
  std::vector<int64_t> groups;
  for (const OnnxNode& node : model.nodes)
    if (node.op == "Conv") groups.push_back(group_of(node));
  CHECK(groups == std::vector<int64_t>{2, 0});
  const std::string kernel = model.nodes[1].inputs[1];
  const auto found = std::find_if(model.initializers.begin(), model.initializers.end(),
                                  [&](const OnnxTensor& one) { return one.name == kernel; });
  REQUIRE(found != model.initializers.end());
  CHECK(found->shape == Shape{6, 2, 3, 3});
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
  CHECK(count(model, "Transpose") == 2);  // the model transposes only its input and its output
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
  CHECK_THROWS_WITH_AS(check(3.001f), doctest::Contains("m.onnx: the exported model's output 'last' differs"),
                       Error);
  CHECK_THROWS_AS(check(std::nanf("")), Error);
  exported.model.probes.outputs[0][0] = std::nanf("");
  CHECK_NOTHROW(check(std::nanf("")));
  CHECK_THROWS_AS(check(1), Error);
  CHECK_THROWS_AS(check_probes(exported.model, {{1, 2}}, ProbeTolerance::float32, "m.onnx"), Error);
}
