// Tests the rates and distributions of dropout and noise in training. Inference has neither dropout nor
// noise.
#include <cmath>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "support/layer_run.h"

namespace dtrain::test {

TEST_CASE("dropout drops elements at its rate, scales the others, and does nothing at inference") {
  LayerCase c{"dropout: {rate: 0.25}", {{"x", {5000}}}};
  c.low = 1, c.high = 2;
  LayerRun run(c);
  const Values output = run.forward();
  size_t dropped = 0;
  for (size_t i = 0; i < output.size(); ++i) {
    if (output[i] == 0)
      ++dropped;
    else
      REQUIRE(output[i] == doctest::Approx(run.inputs[0][i] / 0.75));
  }
  CHECK(dropped == doctest::Approx(2500).epsilon(0.06));
  c.training = false;
  LayerRun inference(c);
  CHECK(inference.requirements().is_view);
  CHECK(inference.forward() == inference.inputs[0]);
}

TEST_CASE("spatial dropout drops whole channels at its rate") {
  for (const auto& [yaml, shape] : {std::pair{"spatial_dropout1d: 0.25", Shape{3, 2000}},
                                    std::pair{"spatial_dropout2d: 0.25", Shape{3, 2, 2000}}}) {
    LayerCase c{yaml, {{"x", shape}}};
    c.low = 1, c.high = 2;
    LayerRun run(c);
    const Values output = run.forward();
    const size_t channels = 2000, pixels = static_cast<size_t>(shape.elements()) / channels;
    size_t dropped = 0;
    for (size_t i = 0; i < output.size(); ++i) {
      const size_t first = i / (pixels * channels) * pixels * channels +
                           i % channels;  // index of the first element of the sample's channel
      REQUIRE((output[i] == 0) == (output[first] == 0));
      if (output[i] == 0)
        ++dropped;
      else
        REQUIRE(output[i] == doctest::Approx(run.inputs[0][i] / 0.75));
    }
    CHECK(dropped / pixels == doctest::Approx(1000).epsilon(0.1));
    c.training = false;
    LayerRun inference(c);
    CHECK(inference.requirements().is_view);
    CHECK(inference.forward() == inference.inputs[0]);
  }
}

TEST_CASE("gaussian_noise and gaussian_dropout have normally distributed noise, and none at inference") {
  // The noise of both layers has the standard deviation 0.5.
  for (const std::string kind : {"gaussian_noise: 0.5", "gaussian_dropout: 0.2"}) {
    INFO(kind);
    LayerCase c{kind, {{"x", {20001}}}};
    c.low = 1, c.high = 2;
    LayerRun run(c);
    const Values output = run.forward();
    const bool adds = kind.starts_with("gaussian_noise");
    double mean = 0, squares = 0, fourth = 0;
    const double share = 1 / static_cast<double>(output.size());
    for (size_t i = 0; i < output.size(); ++i) {
      const double x = run.inputs[0][i], y = output[i], noise = adds ? y - x : y / x - 1;
      mean += noise * share;
      squares += noise * noise * share;
      fourth += std::pow(noise, 4) * share;
    }
    CHECK(std::abs(mean) < 0.01);  // four standard deviations of the mean of 40,002 numbers
    CHECK(squares == doctest::Approx(0.25).epsilon(0.03));
    // Fourth moment of a normal distribution: 3 variance^2.
    CHECK(fourth == doctest::Approx(3 * 0.0625).epsilon(0.1));
    c.training = false;
    LayerRun inference(c);
    CHECK(inference.requirements().is_view);
    CHECK(inference.forward() == inference.inputs[0]);
  }
}

}  // namespace dtrain::test
