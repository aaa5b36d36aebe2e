// Compares the outputs of layers with plain double-precision formulas. Normalization, regularization (dropout
// and noise), attention, recurrent layers and layers with windows have their own files layer_*_test.cpp.
#include <algorithm>
#include <cmath>
#include <functional>

#include <doctest/doctest.h>

#include "support/layer_run.h"

namespace dtrain::test {

TEST_CASE("dense is x kernel + bias over the last axis") {
  LayerRun run({"dense: {units: 2}", {{"x", {3, 4}}}});
  CHECK(run.output.shape == Shape{3, 2});
  Doubles expected;
  for (size_t r = 0; r < 6; ++r)
    for (size_t u = 0; u < 2; ++u) {
      double sum = run.parameters[1][u];
      for (size_t i = 0; i < 4; ++i) sum += double{run.inputs[0][r * 4 + i]} * run.parameters[0][i * 2 + u];
      expected.push_back(sum);
    }
  check_values(run.forward(), expected);
}

TEST_CASE("time_distributed applies its layer to each position as to a sample") {
  const TensorSpec video{"x", {3, 4, 5, 16}}, image{"x", {4, 5, 16}};
  for (const std::string layer :
       {"conv2d: {filters: 16, kernel_size: 3}", "max_pooling2d", "dropout: 0.5", "layer_normalization"}) {
    CAPTURE(layer);
    LayerRun run(
        {"time_distributed: {layer: {" + layer + (layer.find(':') == layer.npos ? ": {}}}" : "}}"), {video}});
    LayerRun one({.yaml = layer, .inputs = {image}, .batch = 6});
    one.inputs[0] = run.inputs[0];
    one.parameters = run.parameters;
    run.first_sample = 5;
    one.first_sample = 15;
    const Values output = run.forward();
    CHECK(output == one.forward());
    const Values diff = spread_values(run.output_elements(), -1, 1, 3);
    const LayerRun::Gradients gradients = run.backward(diff), of_one = one.backward(diff);
    CHECK(gradients.inputs == of_one.inputs);
    CHECK(gradients.parameters == of_one.parameters);
  }
}

TEST_CASE("resizing has the values of Keras's Resizing") {
  const auto run = [](const std::string& options) {
    LayerRun one({.yaml = "resizing: {" + options + "}", .inputs = {{"x", {2, 3, 1}}}, .batch = 1});
    one.inputs = {{1, 5, 2, 8, 3, 9}};
    return one.forward();
  };
  check_values(run("height: 3, width: 2"), {2, 2.75, 4.375, 5.125, 6.75, 7.5});
  CHECK(run("height: 3, width: 2, interpolation: nearest") == Values{1, 2, 8, 9, 8, 9});
  check_values(run("height: 1, width: 1"), {4});
  CHECK(run("height: 1, width: 1, interpolation: nearest") == Values{3});
  check_values(run("height: 2, width: 5"), {1, 2.6, 5, 3.2, 2, 8, 6, 3, 6.6, 9});
  CHECK(run("height: 2, width: 5, interpolation: nearest") == Values{1, 1, 5, 2, 2, 8, 8, 3, 9, 9});
  check_values(run("height: 5, width: 3"), {1, 5, 2, 1.7, 4.8, 2.7, 4.5, 4, 5.5, 7.3, 3.2, 8.3, 8, 3, 9});
}

TEST_CASE("dot has the values of Keras's Dot") {
  const auto run = [](const std::string& options, const Shape& a, const Values& of_a, const Shape& b,
                      const Values& of_b) {
    LayerRun one({.yaml = "dot: {" + options + "}", .inputs = {{"a", a}, {"b", b}}, .batch = 1});
    one.inputs = {of_a, of_b};
    return one.forward();
  };
  const Values a = {1, 2, 3, 4, 5, 6}, b = {1, -1, 2, 0, 3, 1};
  CHECK(run("axes: [1, 2]", {3, 2}, a, {2, 3}, b) == Values{8, 14, 10, 18});
  CHECK(run("axes: [2, 1]", {3, 2}, a, {2, 3}, b) == Values{1, 5, 4, 3, 9, 10, 5, 13, 16});
  CHECK(run("axes: 1", {3}, {1, 3, 5}, {3}, {2, 4, 6}) == Values{44});
  check_values(run("axes: [1, 2], normalize: true", {3, 2}, a, {2, 3}, b),
               {0.55205237865448, 0.7483314275741577, 0.5455446839332581, 0.7606388330459595});
  Values large(24);
  for (size_t i = 0; i < 24; ++i) large[i] = static_cast<float>(i);
  CHECK(run("axes: [2, 1]", {2, 3, 4}, large, {3, 2}, {0, 1, 2, 3, 4, 5}) ==
        Values{40, 52, 46, 61, 52, 70, 58, 79, 112, 160, 118, 169, 124, 178, 130, 187});
  CHECK(run("axes: 1, normalize: true", {2}, {0, 0}, {2}, {1, 2}) == Values{0});
}

TEST_CASE("rescaling multiplies and adds, with one number or one per channel") {
  const auto run = [](const char* yaml) {
    LayerRun layer({.yaml = yaml, .inputs = {{"x", {2, 2}}}, .batch = 1});
    layer.inputs = {{1, 2, 3, 4}};
    return layer.forward();
  };
  CHECK(run("rescaling: 1/2") == Values{0.5, 1, 1.5, 2});
  CHECK(run("rescaling: {scale: 2, offset: -1}") == Values{1, 3, 5, 7});
  CHECK(run("rescaling: {scale: [2, 10], offset: -1}") == Values{1, 19, 5, 39});
  CHECK(run("rescaling: {scale: [2, 10], offset: [0, 0.5]}") == Values{2, 20.5, 6, 40.5});
}

TEST_CASE("activations match their formulas, as layers and fused") {
  const std::vector<std::pair<std::string, std::function<double(double)>>> functions = {
      {"linear", [](double x) { return x; }},
      {"relu", [](double x) { return std::max(x, 0.0); }},
      {"leaky_relu", [](double x) { return x > 0 ? x : 0.2 * x; }},
      {"{leaky_relu: {negative_slope: 0.3}}", [](double x) { return x > 0 ? x : 0.3 * x; }},
      {"gelu", [](double x) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }},
      {"{gelu: {approximate: true}}",
       [](double x) { return x * 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
      {"silu", [](double x) { return x / (1 + std::exp(-x)); }},
      {"tanh", [](double x) { return std::tanh(x); }},
      {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"elu", [](double x) { return x > 0 ? x : std::expm1(x); }},
      {"{elu: {alpha: 2}}", [](double x) { return x > 0 ? x : 2 * std::expm1(x); }},
      {"{relu: {negative_slope: 0.1}}", [](double x) { return x > 0 ? x : 0.1 * x; }},
      {"{relu: {max_value: 1.5, threshold: 0.5, negative_slope: 0.1}}",
       [](double x) { return x > 0.5 ? std::min(x, 1.5) : 0.1 * (x - 0.5); }},
      {"{relu: {max_value: 1}}", [](double x) { return std::clamp(x, 0.0, 1.0); }},
      {"{relu: {max_value: 0.3}}", [](double x) { return std::clamp(x, 0.0, 0.3); }},
      {"relu6", [](double x) { return std::clamp(x, 0.0, 6.0); }},
      {"hard_silu", [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }},
      {"hard_swish", [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }},
      {"hard_sigmoid", [](double x) { return std::clamp(x + 3, 0.0, 6.0) / 6; }},
      {"{hard_sigmoid: {slope: 0.2}}", [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); }},
      {"mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
      {"selu",
       [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); }},
      {"softplus", [](double x) { return std::log1p(std::exp(x)); }},
      {"softsign", [](double x) { return x / (1 + std::abs(x)); }},
      {"exponential", [](double x) { return std::exp(x); }},
  };
  for (const auto& [written, function] : functions) {
    const std::string& name = written;
    INFO(name);
    LayerRun run({.yaml = "activation: " + name, .inputs = {{"x", {32}}}, .low = -3, .high = 3});
    Doubles expected;
    for (const float x : run.inputs[0]) expected.push_back(function(x));
    check_values(run.forward(), expected);

    const ActivationSpec spec = *layer_of("activation: " + name)->elementwise();
    if (!layer_of("add")->can_fuse(spec)) continue;
    LayerRun sum({.yaml = "add", .inputs = {{"x", {8}}, {"y", {8}}}, .fused = spec});
    expected.clear();
    for (size_t i = 0; i < 16; ++i) expected.push_back(function(double{sum.inputs[0][i]} + sum.inputs[1][i]));
    check_values(sum.forward(), expected);
  }
}

TEST_CASE("prelu has one alpha per element, shared along shared_axes") {
  const auto run = [](const char* yaml, Values alpha) {
    LayerRun layer({.yaml = yaml, .inputs = {{"x", {2, 2}}}, .batch = 2});
    layer.inputs = {{-1, 2, -3, -4, 5, -6, 0, -8}};
    layer.parameters = {std::move(alpha)};
    return layer.forward();
  };
  CHECK(run("prelu", {1, 10, 2, 0.5}) == Values{-1, 2, -6, -2, 5, -60, 0, -4});
  CHECK(run("prelu: {shared_axes: 1}", {10, 0.5}) == Values{-10, 2, -30, -2, 5, -3, 0, -4});
  CHECK(run("prelu: {shared_axes: [2]}", {10, 0.5}) == Values{-10, 2, -1.5, -2, 5, -60, 0, -4});
  CHECK(run("prelu: {shared_axes: [1, 2]}", {0.5}) == Values{-0.5, 2, -1.5, -2, 5, -3, 0, -4});
}

TEST_CASE("prelu's gradients are 0 at input 0") {
  LayerRun layer({.yaml = "prelu", .inputs = {{"x", {3}}}, .batch = 1});
  layer.inputs = {{-2, 0, 2}};
  layer.parameters = {{0.5, 0.5, 0.5}};
  layer.forward();
  const LayerRun::Gradients gradients = layer.backward(Values{1, 1, 1});
  CHECK(gradients.inputs[0] == Values{0.5, 0, 1});
  CHECK(gradients.parameters[0] == Values{-2, 0, 0});
}

TEST_CASE("softmax is computed over the last axis") {
  for (const char* yaml : {"softmax", "activation: softmax"}) {
    LayerRun run({yaml, {{"x", {2, 3}}}});
    Doubles expected;
    for (size_t r = 0; r < 4; ++r) {
      double sum = 0;
      for (size_t c = 0; c < 3; ++c) sum += std::exp(run.inputs[0][r * 3 + c]);
      for (size_t c = 0; c < 3; ++c) expected.push_back(std::exp(run.inputs[0][r * 3 + c]) / sum);
    }
    check_values(run.forward(), expected);
  }
}

TEST_CASE("multiply, concatenate, padding, cropping, reshape and embedding match their formulas") {
  LayerRun product({.yaml = "multiply", .inputs = {{"x", {2}}, {"y", {2}}}, .batch = 1});
  product.inputs = {{2, 3}, {5, -7}};
  CHECK(product.forward() == Values{10, -21});

  LayerRun less({.yaml = "subtract", .inputs = {{"x", {2}}, {"y", {2}}}, .batch = 1});
  less.inputs = {{2, 3}, {5, -7}};
  CHECK(less.forward() == Values{-3, 10});
  const auto merged = [](const char* kind) {
    LayerRun run({.yaml = kind, .inputs = {{"x", {3}}, {"y", {3}}, {"z", {3}}}, .batch = 1});
    run.inputs = {{1, 5, -3}, {2, 5, -6}, {6, -1, 0}};
    return run.forward();
  };
  CHECK(merged("average") == Values{3, 3, -3});
  CHECK(merged("maximum") == Values{6, 5, 0});
  CHECK(merged("minimum") == Values{1, -1, -6});

  LayerRun turned({.yaml = "permute: [2, 1]", .inputs = {{"x", {2, 3}}}, .batch = 2});
  turned.inputs = {{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16}};
  CHECK(turned.output.shape == Shape{3, 2});
  CHECK(turned.forward() == Values{1, 4, 2, 5, 3, 6, 11, 14, 12, 15, 13, 16});

  LayerRun repeated({.yaml = "repeat_vector: 2", .inputs = {{"x", {2}}}, .batch = 2});
  repeated.inputs = {{1, 2, 3, 4}};
  CHECK(repeated.forward() == Values{1, 2, 1, 2, 3, 4, 3, 4});

  LayerRun larger({.yaml = "upsampling2d: [2, 3]", .inputs = {{"x", {1, 2, 1}}}, .batch = 2});
  larger.inputs = {{1, 2, 3, 4}};
  CHECK(larger.output.shape == Shape{2, 6, 1});
  CHECK(larger.forward() == Values{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4});

  LayerRun between({.yaml = "upsampling2d: {size: [1, 2], interpolation: bilinear}",
                    .inputs = {{"x", {1, 2, 1}}},
                    .batch = 2});
  between.inputs = {{1, 5, 3, 4}};
  CHECK(between.output.shape == Shape{1, 4, 1});
  CHECK(between.forward() == Values{1, 2, 4, 5, 3, 3.25, 3.75, 4});

  LayerRun deeper({.yaml = "upsampling3d: [2, 1, 2]", .inputs = {{"x", {1, 1, 2, 1}}}, .batch = 2});
  deeper.inputs = {{1, 2, 3, 4}};
  CHECK(deeper.output.shape == Shape{2, 1, 4, 1});
  CHECK(deeper.forward() == Values{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4});
  LayerRun framed(
      {.yaml = "zero_padding3d: [[1, 0], [0, 1], [1, 0]]", .inputs = {{"x", {1, 1, 2, 1}}}, .batch = 1});
  framed.inputs = {{1, 2}};
  CHECK(framed.output.shape == Shape{2, 2, 3, 1});
  CHECK(framed.forward() == Values{0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0});
  LayerRun cut({.yaml = "cropping3d: [[1, 0], [0, 1], [1, 0]]", .inputs = {{"x", {2, 2, 3, 1}}}, .batch = 1});
  cut.inputs = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  CHECK(cut.output.shape == Shape{1, 1, 2, 1});
  CHECK(cut.forward() == Values{8, 9});

  LayerRun ends({.yaml = "zero_padding1d: [2, 1]", .inputs = {{"x", {2, 1}}}, .batch = 1});
  ends.inputs = {{3, 4}};
  CHECK(ends.forward() == Values{0, 0, 3, 4, 0});

  LayerRun joined({"concatenate: {axis: -2}", {{"x", {1, 2}}, {"y", {2, 2}}}});
  joined.inputs = {{1, 2, 3, 4}, {5, 6, 7, 8, 9, 10, 11, 12}};
  CHECK(joined.forward() == Values{1, 2, 5, 6, 7, 8, 3, 4, 9, 10, 11, 12});

  LayerRun padded({.yaml = "zero_padding2d: [[1, 0], [0, 2]]", .inputs = {{"x", {1, 2, 1}}}, .batch = 1});
  padded.inputs = {{3, 4}};
  CHECK(padded.forward() == Values{0, 0, 0, 0, 3, 4, 0, 0});

  LayerRun cropped({.yaml = "cropping2d: [[1, 0], [0, 2]]", .inputs = {{"x", {2, 4, 1}}}, .batch = 2});
  cropped.inputs = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
  CHECK(cropped.forward() == Values{5, 6, 13, 14});

  LayerRun shaped({"reshape: {target_shape: [-1, 2]}", {{"x", {6}}}});
  CHECK(shaped.output.shape == Shape{3, 2});
  CHECK(shaped.forward() == shaped.inputs[0]);

  LayerRun table({"embedding: {input_dim: 3, output_dim: 2}", {{"x", {2}, DType::int32}}});
  table.inputs = {{2, 0, 1, 2}};
  table.parameters = {{10, 11, 20, 21, 30, 31}};
  CHECK(table.output.shape == Shape{2, 2});
  CHECK(table.forward() == Values{30, 31, 10, 11, 20, 21, 30, 31});
}

TEST_CASE("masking and embedding create masks; masking sets masked steps to 0 and stops their gradients") {
  LayerRun masking({.yaml = "masking: {mask_value: 2}", .inputs = {{"x", {3, 2}}}, .batch = 1});
  masking.inputs = {{2, 2, 2, 1, 0, 0}};
  CHECK(masking.forward() == Values{0, 0, 2, 1, 0, 0});
  CHECK(masking.further[0] == Values{0, 1, 1});
  CHECK(masking.backward({1, 2, 3, 4, 5, 6}).inputs[0] == Values{0, 0, 3, 4, 5, 6});

  LayerRun embedding(
      {"embedding: {input_dim: 3, output_dim: 1, mask_zero: true}", {{"x", {2}, DType::int32}}});
  embedding.inputs = {{2, 0, 1, 0}};
  embedding.parameters = {{10, 20, 30}};
  CHECK(embedding.forward() == Values{30, 10, 20, 10});
  CHECK(embedding.further[0] == Values{1, 0, 1, 0});
}

TEST_CASE("the first of equal inputs gets the gradient of maximum and minimum") {
  for (const char* kind : {"maximum", "minimum"}) {
    LayerRun run({.yaml = kind, .inputs = {{"x", {2}}, {"y", {2}}, {"z", {2}}}, .batch = 1});
    run.inputs = {{4, 1}, {4, 7}, {4, 7}};
    run.forward();
    const auto gradients = run.backward(Values{1, 1}).inputs;
    const bool largest = std::string(kind) == "maximum";
    CHECK(gradients[0] == (largest ? Values{1, 0} : Values{1, 1}));
    CHECK(gradients[1] == (largest ? Values{0, 1} : Values{0, 0}));
    CHECK(gradients[2] == Values{0, 0});
  }
}

}  // namespace dtrain::test
