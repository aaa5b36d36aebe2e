// Tests recurrent layers. tests/ops/recurrence_test.cpp tests the operation Ops::recurrence.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "support/layer_run.h"

namespace dtrain::test {
namespace {

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

/// Returns a simple_rnn that outputs its inputs: the kernel is the identity, and the state is not used.
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

TEST_CASE("an lstm matches its formula") {
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

TEST_CASE("a bidirectional layer merges both directions in the order of the input") {
  constexpr size_t kBatch = 2, kSteps = 4, kUnits = 3;
  const auto run_of = [](const std::string& yaml) {
    return LayerRun({.yaml = yaml, .inputs = {{"x", {kSteps, 5}}}, .training = false, .batch = kBatch});
  };
  for (const bool sequences : {false, true}) {
    const std::string own = std::string("units: 3, return_sequences: ") + (sequences ? "true" : "false");
    LayerRun ahead = run_of("lstm: {" + own + "}"), back = run_of("lstm: {" + own + ", go_backwards: true}");
    for (const std::string mode : {"concat", "sum", "mul", "ave", "none"}) {
      CAPTURE(mode);
      CAPTURE(sequences);
      LayerRun both = run_of("bidirectional: {layer: {lstm: {" + own + "}}, merge_mode: " + mode + "}");
      ahead.inputs = back.inputs = both.inputs;
      ahead.parameters = {both.parameters.begin(), both.parameters.begin() + 3};
      back.parameters = {both.parameters.begin() + 3, both.parameters.end()};
      CHECK(both.parameter_specs[1].name == "forward_recurrent_kernel");
      CHECK(both.parameter_specs[5].name == "backward_bias");
      const Values a = ahead.forward(), unordered = back.forward();
      const size_t steps = sequences ? kSteps : 1;
      Values b;
      for (size_t s = 0; s < kBatch; ++s)
        for (size_t t = 0; t < steps; ++t)
          for (size_t u = 0; u < kUnits; ++u)
            b.push_back(unordered[(s * steps + steps - 1 - t) * kUnits + u]);
      Doubles expected;
      for (size_t row = 0; row < kBatch * steps; ++row) {
        const auto of = [&](const Values& from, size_t u) { return double{from[row * kUnits + u]}; };
        for (size_t u = 0; u < kUnits; ++u) {
          const double x = of(a, u), y = of(b, u);
          expected.push_back(mode == "sum" ? x + y : mode == "mul" ? x * y : mode == "ave" ? (x + y) / 2 : x);
        }
        for (size_t u = 0; u < kUnits && mode == "concat"; ++u) expected.push_back(of(b, u));
      }
      check_values(both.forward(), expected, 1e-6);
      if (mode == "none") check_values(both.further[0], Doubles(b.begin(), b.end()), 1e-6);
    }
  }
}

/// The expected values are those of Keras 3.15.
TEST_CASE("a bidirectional layer skips masked steps, and sequences are 0 there") {
  const auto run_of = [](const std::string& options) {
    LayerRun run({.yaml = "bidirectional: {layer: {simple_rnn: {units: 1" + options,
                  .inputs = {{"x", {3, 2}}},
                  .training = false,
                  .mask = {1, 1, 0, 0, 1, 0}});
    run.inputs = {{0.5f, -1, 2, 0.25f, -0.5f, 1, 1, 1, 0.25f, -0.75f, 3, 0.5f}};
    run.parameters = {{0.5f, -0.25f}, {0.75f}, {0.125f}, {-0.5f, 1}, {0.25f}, {-0.375f}};
    return run.forward();
  };
  check_values(run_of("}}}"), {0.90117717, -0.9495638, 0.41157004, -0.8482837}, 1e-6);
  check_values(run_of(", return_sequences: true}}}"),
               {0.5545997, -0.9495638, 0.90117717, -0.8093011, 0, 0, 0, 0, 0.41157004, -0.8482837, 0, 0},
               1e-6);
  check_values(run_of(", return_sequences: true}}, merge_mode: mul}"),
               {-0.5266278, -0.7293236, 0, 0, -0.34912816, 0}, 1e-6);
}

TEST_CASE("the states of a bidirectional layer follow its output, those of the first direction first") {
  LayerRun run({.yaml = "bidirectional: {layer: {lstm: {units: 2, return_state: true}}}",
                .inputs = {{"x", {3, 4}}},
                .training = false});
  const Values merged = run.forward();
  REQUIRE(run.further.size() == 4);
  for (size_t sample = 0; sample < 2; ++sample)
    for (size_t unit = 0; unit < 2; ++unit) {
      CHECK(merged[4 * sample + unit] == run.further[0][2 * sample + unit]);
      CHECK(merged[4 * sample + 2 + unit] == run.further[2][2 * sample + unit]);
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
    // The first state is equal to the output. A gradient of this state therefore has the same effect as a
    // gradient of the output.
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
  CHECK(run.forward() != output);  // every step draws other elements to drop
  // The dropped elements of a sample depend only on the index of the sample in the global batch. This run
  // begins with sample 2.
  run.step = 5, run.first_sample = 2;
  const Values later = run.forward();
  for (size_t i = 0; i < 50; ++i) CHECK((later[i] == 0) == (output[2 * 200 + i] == 0));
  LayerRun inference = copying_rnn(", dropout: 0.25", false);
  CHECK(inference.forward() == inference.inputs[0]);
}

/// For each gate, other elements of the state are dropped, as in Keras.
TEST_CASE("recurrent_dropout uses one mask for all steps of a sample") {
  constexpr size_t kBatch = 5, kUnits = 40, kSteps = 3;
  const auto run_of = [](const std::string& options, bool training) {
    LayerRun run(
        {.yaml = "simple_rnn: {units: 40, activation: linear, use_bias: false, return_sequences: true" +
                 options + "}",
         .inputs = {{"x", {3, 1}}, {"h", {40}}},
         .training = training,
         .batch = kBatch,
         .low = 1,
         .high = 2});
    // The recurrent kernel is the identity, and the input kernel is 0.
    for (Values& values : run.parameters) std::fill(values.begin(), values.end(), 0.0f);
    for (size_t i = 0; i < kUnits; ++i) run.parameters[1][i * (kUnits + 1)] = 1;
    return run;
  };
  LayerRun run = run_of(", recurrent_dropout: 0.25", true);
  const Values output = run.forward();
  size_t dropped = 0;
  for (size_t sample = 0; sample < kBatch; ++sample)
    for (size_t j = 0; j < kUnits; ++j) {
      double state = double{run.inputs[1][sample * kUnits + j]};
      const bool is_dropped = output[sample * kSteps * kUnits + j] == 0;
      dropped += is_dropped;
      for (size_t t = 0; t < kSteps; ++t) {
        state *= is_dropped ? 0 : 1 / 0.75;
        CHECK(output[(sample * kSteps + t) * kUnits + j] == doctest::Approx(state));
      }
    }
  CHECK(dropped > 25);
  CHECK(dropped < 75);
  CHECK(run.forward() == output);  // if the step is recomputed, the same elements are dropped
  run.step = 6;
  CHECK(run.forward() != output);
  run.step = 5, run.first_sample = 2;
  const Values later = run.forward();
  for (size_t j = 0; j < kUnits; ++j) CHECK((later[j] == 0) == (output[2 * kSteps * kUnits + j] == 0));
  CHECK(run_of(", recurrent_dropout: 0.25", false).forward() == run_of("", false).forward());
}

TEST_CASE("recurrent_dropout drops other elements of the state for each gate") {
  constexpr size_t kUnits = 200;
  LayerRun run({.yaml = "lstm: {units: 200, activation: linear, recurrent_activation: linear, "
                        "recurrent_dropout: 0.5}",
                .inputs = {{"x", {1, 1}}, {"h", {200}}, {"c", {200}}},
                .training = true,
                .batch = 1,
                .low = 1,
                .high = 2});
  // The input gate and the output gate are equal to the state after recurrent dropout, which drops half of
  // the elements for each gate. The candidate is 1, and the forget gate is 0. Therefore, an element of the
  // new state is nonzero only if it is dropped for neither gate.
  for (Values& values : run.parameters) std::fill(values.begin(), values.end(), 0.0f);
  for (const size_t gate : {size_t{0}, size_t{3}})
    for (size_t i = 0; i < kUnits; ++i) run.parameters[1][(i * 4 + gate) * kUnits + i] = 1;
  std::fill_n(run.parameters[2].begin() + 2 * kUnits, kUnits, 1.0f);
  size_t kept = 0;
  for (const float value : run.forward()) kept += value != 0;
  CHECK(kept > 25);
  // About a quarter of 200 elements are kept. If both gates dropped the same elements, half of them would be
  // kept.
  CHECK(kept < 75);
}

}  // namespace dtrain::test
