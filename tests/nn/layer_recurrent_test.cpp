// Recurrent layers: what they do besides Ops::recurrence, which tests/ops/recurrence_test.cpp tests.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "support/layer_run.h"

namespace dtrain::test {
namespace {

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

/// A simple_rnn that returns its inputs: the kernel is the identity, and the state is not used.
LayerRun copying_rnn(const std::string& options, bool training) {
  LayerRun run(
      {.yaml = "simple_rnn: {units: 50, activation: linear, use_bias: false, return_sequences: true" +
               options + "}",
       .inputs = {{"x", {4, 50}}},
       .training = training,
       .batch = 6,
       .low = 1,
       .high = 2});
  std::fill(run.parameters[0].begin(), run.parameters[0].end(), 0.0f);
  std::fill(run.parameters[1].begin(), run.parameters[1].end(), 0.0f);
  for (size_t i = 0; i < 50; ++i) run.parameters[0][i * 51] = 1;
  return run;
}

}  // namespace

TEST_CASE("an lstm has its formula's values") {
  for (const bool training : {true, false}) {
    LayerRun run({.yaml = "lstm: {units: 1, return_sequences: true, return_state: true}",
                  .inputs = {{"x", {2, 1}}, {"h", {1}}, {"c", {1}}},
                  .training = training,
                  .batch = 1});
    run.inputs = {{0.5f, -0.75f}, {0.25f}, {-0.5f}};
    run.parameters = {{0.1f, -0.2f, 0.3f, 0.4f}, {-0.5f, 0.6f, 0.7f, -0.8f}, {0.9f, 1.0f, -0.1f, 0.2f}};
    const auto sum = [&](size_t gate, double x, double h) {
      return x * double{run.parameters[0][gate]} + h * double{run.parameters[1][gate]} +
             double{run.parameters[2][gate]};
    };
    double h = 0.25, c = -0.5;
    Doubles expected;
    for (const double x : {0.5, -0.75}) {
      c = logistic(sum(1, x, h)) * c + logistic(sum(0, x, h)) * std::tanh(sum(2, x, h));
      h = logistic(sum(3, x, h)) * std::tanh(c);
      expected.push_back(h);
    }
    check_values(run.forward(), expected, 1e-6);
    REQUIRE(run.further.size() == 2);
    check_values(run.further[0], {h}, 1e-6);
    check_values(run.further[1], {c}, 1e-6);
  }
}

TEST_CASE("a recurrent layer adds the gradients of its states to those of its output") {
  for (const char* yaml : {"lstm: {units: 3, return_state: true}", "gru: {units: 3, return_state: true}",
                           "simple_rnn: {units: 3, return_state: true}"}) {
    INFO(yaml);
    LayerRun run({.yaml = yaml, .inputs = {{"x", {4, 2}}}});
    const Values diff = spread_values(6, -1, 1, 7), none(6, 0.0f);
    run.forward();
    const LayerRun::Gradients of_output = run.backward(diff);
    run.diff_further.assign(run.outputs.size() - 1, none);
    run.diff_further[0] = diff;
    run.forward();
    // The last state is the output.
    CHECK(run.backward(none).inputs == of_output.inputs);
    if (run.diff_further.size() < 2) continue;
    run.diff_further = {none, diff};
    run.forward();
    CHECK(run.backward(none).inputs != of_output.inputs);
  }
}

TEST_CASE("the bias of an lstm's forget gate begins at 1") {
  const auto bias_of = [](const std::string& yaml) {
    const std::vector<ParameterSpec> parameters = layer_of(yaml)->parameters({{{"x", {3, 2}}}});
    Values values(static_cast<size_t>(parameters[2].shape.elements()));
    parameters[2].initializer->fill(values.data(), parameters[2].shape, Philox::of(1, 2));
    return values;
  };
  CHECK(bias_of("lstm: {units: 2}") == Values{0, 0, 1, 1, 0, 0, 0, 0});
  CHECK(bias_of("lstm: {units: 2, bias_initializer: {constant: 3}}") == Values{3, 3, 1, 1, 3, 3, 3, 3});
  CHECK(bias_of("lstm: {units: 2, unit_forget_bias: false}") == Values(8, 0.0f));
  CHECK(bias_of("gru: {units: 1}") == Values(6, 0.0f));
}

TEST_CASE("a recurrent layer drops the same features of a sample in all steps") {
  LayerRun run = copying_rnn(", dropout: 0.25", true);
  const Values output = run.forward();
  size_t dropped = 0;
  for (size_t sample = 0; sample < 6; ++sample)
    for (size_t i = 0; i < 50; ++i) {
      const bool is_dropped = output[sample * 200 + i] == 0;
      dropped += is_dropped;
      for (size_t t = 0; t < 4; ++t) {
        const size_t at = sample * 200 + t * 50 + i;
        CHECK(output[at] == doctest::Approx(is_dropped ? 0 : double{run.inputs[0][at]} / 0.75));
      }
    }
  CHECK(dropped > 50);
  CHECK(dropped < 100);
  run.step = 6;
  CHECK(run.forward() != output);  // every step draws again
  // Only the sample's place in the global batch matters.
  run.step = 5, run.first_sample = 2;
  const Values later = run.forward();
  for (size_t i = 0; i < 50; ++i) CHECK((later[i] == 0) == (output[2 * 200 + i] == 0));
  LayerRun inference = copying_rnn(", dropout: 0.25", false);
  CHECK(inference.forward() == inference.inputs[0]);
}

}  // namespace dtrain::test
