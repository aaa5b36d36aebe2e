// Compares the outputs of normalization layers with plain double-precision formulas.
#include <cmath>

#include <doctest/doctest.h>

#include "support/layer_run.h"

namespace dtrain::test {

namespace {

/// Replaces x by (x - mean) / sqrt(variance + 1e-3) over the elements `first + i * stride`.
void normalize(Doubles& values, size_t first, size_t stride, size_t count) {
  double mean = 0, variance = 0;
  for (size_t i = 0; i < count; ++i) mean += values[first + i * stride] / static_cast<double>(count);
  for (size_t i = 0; i < count; ++i)
    variance += std::pow(values[first + i * stride] - mean, 2) / static_cast<double>(count);
  for (size_t i = 0; i < count; ++i) {
    double& value = values[first + i * stride];
    value = (value - mean) / std::sqrt(variance + 1e-3);
  }
}

}  // namespace

TEST_CASE("batch normalization uses the batch's statistics in training") {
  LayerRun run({"batch_normalization", {{"x", {2, 2, 3}}}});
  Doubles expected(run.inputs[0].begin(), run.inputs[0].end());
  for (size_t c = 0; c < 3; ++c) normalize(expected, c, 3, 8);
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = expected[i] * run.parameters[0][i % 3] + run.parameters[1][i % 3];
  check_values(run.forward(), expected);
}

/// The expected values are those of Keras 3.15.
TEST_CASE("the statistics of batch normalization leave out masked positions") {
  for (const char* yaml : {"batch_normalization", "batch_normalization: {synchronized: true}"}) {
    CAPTURE(yaml);
    LayerRun run({.yaml = yaml, .inputs = {{"x", {3, 2}}}, .mask = {1, 1, 0, 0, 1, 0}});
    run.inputs = {{0.5f, -1, 2, 0.25f, -0.5f, 1, 1, 1, 0.25f, -0.75f, 3, 0.5f}};
    run.parameters = {{1.5f, -0.5f}, {0.25f, 1}, {0.1f, 0.2f}, {1, 2}};
    check_values(run.forward(), {-0.55806959, 1.46211863, 2.350981, 0.30682215, -2.49743652, -0.3863557,
                                 0.41161394, -0.3863557, -1.04291129, 1.23105931, 4.29034805, 0.07576287});
    const auto gradients = run.backward(Values(12, 0.0f)).parameters;
    check_values(gradients[2], {2.75 / 3, -0.5});
    check_values(gradients[3], {2 * 0.798611044883728 - 1, 2 * 1.1458333730697632 - 2});
  }
}

TEST_CASE("without valid positions, mean and variance of a batch are 0") {
  LayerRun run({.yaml = "batch_normalization: {scale: false, center: false}",
                .inputs = {{"x", {2, 1}}},
                .batch = 1,
                .mask = {0, 0}});
  run.inputs = {{0.5f, -2}};
  const double scale = 1 / std::sqrt(1e-3);
  check_values(run.forward(), {0.5 * scale, -2 * scale});
  const auto gradients = run.backward({1, 3});
  check_values(gradients.inputs[0], {scale, 3 * scale});
  check_values(gradients.parameters[0], {0});
}

TEST_CASE("batch normalization uses moving averages at inference and if frozen") {
  for (const bool training : {false, true}) {
    LayerRun run({.yaml = "batch_normalization",
                  .inputs = {{"x", {2, 2, 3}}},
                  .training = training,
                  .trainable = false});
    Doubles expected;
    for (size_t i = 0; i < run.inputs[0].size(); ++i) {
      const size_t c = i % 3;
      const double normal =
          (run.inputs[0][i] - double{run.parameters[2][c]}) / std::sqrt(double{run.parameters[3][c]} + 1e-3);
      expected.push_back(normal * run.parameters[0][c] + run.parameters[1][c]);
    }
    check_values(run.forward(), expected);
  }
}

TEST_CASE("layer normalization matches its formula") {
  for (const bool training : {false, true}) {
    LayerRun run({.yaml = "layer_normalization", .inputs = {{"x", {3, 5}}}, .training = training});
    Doubles expected(run.inputs[0].begin(), run.inputs[0].end());
    for (size_t r = 0; r < 6; ++r) normalize(expected, r * 5, 1, 5);
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] = expected[i] * run.parameters[0][i % 5] + run.parameters[1][i % 5];
    check_values(run.forward(), expected);
  }
}

TEST_CASE("group normalization matches its formula") {
  for (const bool training : {false, true}) {
    LayerRun run(
        {.yaml = "group_normalization: {groups: 2}", .inputs = {{"x", {3, 4}}}, .training = training});
    Doubles expected(run.inputs[0].begin(), run.inputs[0].end());
    for (size_t sample = 0; sample < 2; ++sample)
      for (size_t group = 0; group < 2; ++group) {
        // The values of the group's channels in all pixels, one after the other.
        Doubles values;
        const auto place = [&](size_t i) { return sample * 12 + i / 2 * 4 + group * 2 + i % 2; };
        for (size_t i = 0; i < 6; ++i) values.push_back(expected[place(i)]);
        normalize(values, 0, 1, 6);
        for (size_t i = 0; i < 6; ++i) expected[place(i)] = values[i];
      }
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] = expected[i] * run.parameters[0][i % 4] + run.parameters[1][i % 4];
    check_values(run.forward(), expected);
  }
}

TEST_CASE("normalization of large values keeps their differences") {
  for (const char* yaml : {"group_normalization: {groups: 1}", "layer_normalization"}) {
    LayerRun run({.yaml = yaml, .inputs = {{"x", {4}}}, .batch = 1});
    run.inputs = {{4e6f + 1, 4e6f + 2, 4e6f + 3, 4e6f + 4}};
    run.parameters = {{1, 1, 1, 1}, {0, 0, 0, 0}};
    Doubles expected = {1, 2, 3, 4};
    normalize(expected, 0, 1, 4);
    check_values(run.forward(), expected);
  }
}

TEST_CASE("rms_normalization and unit_normalization match their formulas") {
  for (const bool training : {false, true}) {
    LayerRun run({.yaml = "rms_normalization", .inputs = {{"x", {3, 5}}}, .training = training});
    LayerRun unit({.yaml = "unit_normalization", .inputs = {{"x", {3, 5}}}, .training = training});
    Doubles expected, of_unit;
    for (size_t i = 0; i < run.inputs[0].size(); ++i) {
      double squares = 0, of_unit_squares = 0;
      for (size_t c = 0; c < 5; ++c) {
        squares += std::pow(double{run.inputs[0][i / 5 * 5 + c]}, 2);
        of_unit_squares += std::pow(double{unit.inputs[0][i / 5 * 5 + c]}, 2);
      }
      expected.push_back(run.inputs[0][i] / std::sqrt(squares / 5 + 1e-6) * run.parameters[0][i % 5]);
      of_unit.push_back(unit.inputs[0][i] / std::sqrt(of_unit_squares));
    }
    check_values(run.forward(), expected);
    check_values(unit.forward(), of_unit);
  }
}

TEST_CASE("unit_normalization of rows near zero multiplies by 1e12, as in Keras") {
  LayerRun run({.yaml = "unit_normalization", .inputs = {{"x", {2}}}, .batch = 2});
  run.inputs = {{0, 0, 3e-13f, 4e-13f}};
  check_values(run.forward(), {0, 0, 0.3, 0.4});
  check_values(run.backward({1, 2, 1, 0}).inputs[0], {1e12, 2e12, 1e12, 0});
}

}  // namespace dtrain::test
