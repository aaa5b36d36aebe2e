// Tests attention layers and position embeddings. tests/ops/attention_test.cpp tests the operation
// Ops::attention.
#include <cmath>

#include <doctest/doctest.h>

#include "support/layer_run.h"

namespace dtrain::test {

TEST_CASE("multi_head_attention matches its formula") {
  LayerRun run(
      {.yaml = "multi_head_attention: {num_heads: 1, causal: true}", .inputs = {{"x", {2, 1}}}, .batch = 1});
  run.inputs = {{0.5f, -0.75f}};
  // The parameters are kernel and bias of queries, keys, values and the output.
  run.parameters = {{2}, {0.1f}, {-1}, {0.2f}, {3}, {-0.5f}, {0.5f}, {1}};
  const auto value = [](double x) { return 3 * x - 0.5; };
  const double query = 2 * -0.75 + 0.1;
  const double first = std::exp(query * (-0.5 + 0.2)), second = std::exp(query * (0.75 + 0.2));
  const double mean = (first * value(0.5) + second * value(-0.75)) / (first + second);
  check_values(run.forward(), {0.5 * value(0.5) + 1, 0.5 * mean + 1}, 1e-6);
}

TEST_CASE("multi_head_attention gives the same for one input and for equal inputs") {
  const std::string yaml =
      "multi_head_attention: {num_heads: 4, key_dim: 2, num_key_value_heads: 2, rotary: {}}";
  const TensorSpec x{"x", {5, 6}};
  LayerRun one({.yaml = yaml, .inputs = {x}});
  const Values expected = one.forward(), diff = spread_values(2 * 5 * 6, -1, 1, 3);
  const LayerRun::Gradients gradients = one.backward(diff);
  for (const size_t count : {2, 3}) {
    LayerRun several({.yaml = yaml, .inputs = std::vector<TensorSpec>(count, x)});
    several.inputs.assign(count, one.inputs[0]);
    several.parameters = one.parameters;
    check_values(several.forward(), Doubles(expected.begin(), expected.end()), 1e-5);
    const LayerRun::Gradients parts = several.backward(diff);
    Doubles sum(expected.size(), 0.0);
    for (const Values& part : parts.inputs)
      for (size_t i = 0; i < part.size(); ++i) sum[i] += static_cast<double>(part[i]);
    check_values(gradients.inputs[0], sum, 1e-4);
  }
}

TEST_CASE("the dropout of multi_head_attention depends on the sample's place in the global batch") {
  const LayerCase all{
      .yaml = "multi_head_attention: {num_heads: 2, dropout: 0.5}", .inputs = {{"x", {5, 4}}}, .batch = 3};
  LayerCase part = all;
  part.batch = 1;
  LayerRun whole(all), last(part);
  last.parameters = whole.parameters;
  last.inputs[0].assign(whole.inputs[0].end() - 20, whole.inputs[0].end());
  last.first_sample = 2;
  const Values values = whole.forward();
  check_values(last.forward(), Doubles(values.end() - 20, values.end()), 1e-6);
  last.first_sample = 1;
  CHECK(last.forward() != Values(values.end() - 20, values.end()));
}

TEST_CASE("position_embedding adds its vectors, of as many positions as the sequence has") {
  LayerRun run({.yaml = "position_embedding: {sequence_length: 3}", .inputs = {{"x", {2, 2}}}, .batch = 2});
  run.inputs = {{1, 2, 3, 4, 5, 6, 7, 8}};
  run.parameters = {{10, 20, 30, 40, 50, 60}};
  CHECK(run.forward() == Values{11, 22, 33, 44, 15, 26, 37, 48});
  const LayerRun::Gradients gradients = run.backward({1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(gradients.inputs[0] == Values{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(gradients.parameters[0] == Values{6, 8, 10, 12, 0, 0});
}

TEST_CASE("sinusoidal_position_encoding adds sines and cosines") {
  LayerRun run(
      {.yaml = "sinusoidal_position_encoding: {max_wavelength: 100}", .inputs = {{"x", {2, 4}}}, .batch = 1});
  run.inputs = {Values(8, 1.0f)};
  check_values(run.forward(),
               {1, 2, 1, 2, 1 + std::sin(1.0), 1 + std::cos(1.0), 1 + std::sin(0.1), 1 + std::cos(0.1)},
               1e-6);
}

}  // namespace dtrain::test
