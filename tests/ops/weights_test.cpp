// Penalties of regularizers, and constraints.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "ops/fixture.h"

namespace dtrain::test {
namespace {

constexpr PenaltySpec kPenalty{.l1 = 0.3f, .l2 = 0.7f};

Array<StepState> state_of(const Device& device, const GradientScale& gradient, double row_weights = 1) {
  return device.array(std::vector<StepState>{{{.row_weights = row_weights}, gradient}});
}

}  // namespace

DEVICE_TEST_CASE("a penalty is added to the total") {
  for (const int64_t n : {1, 100, 70001}) {
    const Floats weights = device.random(n, 1);
    double expected = 5;
    for (const float w : weights) {
      const auto x = static_cast<double>(w);
      expected += 0.3 * std::abs(x) + 0.7 * x * x;
    }
    const auto own = device.array(weights);
    const auto total = device.array(Doubles{5});
    device.ops().add_penalty(kPenalty, own.data(), total.data(), n);
    CHECK(total.read()[0] == doctest::Approx(expected).epsilon(1e-6));
  }
}

DEVICE_TEST_CASE("a penalty's gradient has the scale of the gradient before the update") {
  const int64_t n = 1001;
  Floats weights = device.random(n, 1);
  weights[3] = 0;
  const Floats before = device.random(n, 2);
  // 10 rows with a total weight of 4: the update multiplies by 10 / 4 / loss_scale.
  const auto check = [&](const GradientRule& rule, double row_weights, double scale) {
    Doubles expected = doubles_of(before);
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto x = static_cast<double>(weights[i]);
      expected[i] += scale * (0.3 * (x > 0 ? 1 : x < 0 ? -1 : 0) + 1.4 * x);
    }
    const auto state = state_of(device, {.loss_scale = 8}, 10);
    const auto own = device.array(weights), gradient = device.array(before);
    const auto sum = device.array(Doubles{row_weights});
    device.ops().add_penalty_gradient(kPenalty, {.rule = rule,
                                                 .row_weights = rule.is_weighted ? sum.data() : nullptr,
                                                 .state = state.data(),
                                                 .weights = own.data(),
                                                 .gradient = gradient.data(),
                                                 .n = n});
    check_close(gradient.read(), expected, 1e-6);
  };
  check({}, 0, 8);
  check({.is_weighted = true}, 4, 8 / 2.5);
  check({.is_weighted = true}, 0, 8);
}

DEVICE_TEST_CASE("norms are limited as in Keras") {
  // Keras 3.15 computed the expected values.
  const Floats weights = {-1, -0.8f, -0.6f, -0.4f, -0.2f, 0, 0.2f, 0.4f, 0.6f, 0.8f, 1, 1.2f};
  const auto limited = [&](const ConstraintSpec& spec, int32_t skip = 0) {
    const auto own = device.array(weights);
    const auto state = state_of(device, {.skip = skip});
    const bool copies = device.math.type != DType::float32;
    const TypedArray copy = device.typed(weights);
    device.ops().constrain(spec, state.data(), own.data(), copies ? copy.data() : nullptr);
    if (copies) CHECK(copy.read() == device.kept(own.read()));
    return own.read();
  };
  check_close(limited({.min = 0.5f, .max = 1.2f, .rate = 0.5f, .outer = 1, .extent = 3, .inner = 4}),
              Floats{-0.9999999f, -0.7999999f, -0.59999996f, -0.38090676f, -0.19999996f, 0, 0.20000002f,
                     0.38090676f, 0.59999996f, 0.79999983f, 0.9999999f, 1.1427203f},
              1e-6);
  check_close(limited({.max = 1, .outer = 3, .extent = 4, .inner = 1}),
              Floats{-0.6804137f, -0.544331f, -0.40824825f, -0.27216548f, -0.19999996f, 0, 0.20000002f,
                     0.39999992f, 0.3234983f, 0.43133104f, 0.5391638f, 0.6469966f},
              1e-6);
  check_close(limited({.min = 1, .max = 1, .outer = 1, .extent = 12, .inner = 1}),
              Floats{-0.41380292f, -0.33104235f, -0.24828176f, -0.16552116f, -0.08276058f, 0, 0.0827606f,
                     0.16552116f, 0.24828176f, 0.33104232f, 0.41380292f, 0.49656352f},
              1e-6);
  CHECK(limited({.non_negative = true, .outer = 1, .extent = 3, .inner = 4}) ==
        Floats{0, 0, 0, 0, 0, 0, 0.2f, 0.4f, 0.6f, 0.8f, 1, 1.2f});
  CHECK(limited({.non_negative = true, .inner = 12}, 1) == weights);
  CHECK(limited({.max = 0.1f, .extent = 12}, 1) == weights);
}

DEVICE_TEST_CASE("norms over any axis are limited") {
  const ConstraintSpec spec{.max = 2, .outer = 3, .extent = 50, .inner = 131};
  const Floats weights = device.random(3 * 50 * 131, 1);
  Floats expected = weights;
  for (size_t outer = 0; outer < 3; ++outer)
    for (size_t inner = 0; inner < 131; ++inner) {
      const auto at = [&](size_t k) -> float& { return expected[(outer * 50 + k) * 131 + inner]; };
      double squares = 0;
      for (size_t k = 0; k < 50; ++k) squares += static_cast<double>(at(k)) * static_cast<double>(at(k));
      const double norm = std::sqrt(squares);
      for (size_t k = 0; k < 50; ++k) at(k) *= static_cast<float>(std::min(norm, 2.0) / (norm + 1e-7));
    }
  const auto own = device.array(weights);
  const auto state = state_of(device, {});
  device.ops().constrain(spec, state.data(), own.data(), nullptr);
  check_close(own.read(), expected, 1e-5);
}

}  // namespace dtrain::test
