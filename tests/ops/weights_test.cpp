// Tests penalties of regularizers, and constraints.
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

DEVICE_TEST_CASE("the orthogonal penalty of rows or columns, and the gradient of some elements") {
  constexpr int64_t kRows = 5, kColumns = 7, kFirst = 3, kCount = 25;
  Floats weights = device.random(kRows * kColumns, 1);
  for (const bool of_columns : {false, true}) {
    CAPTURE(of_columns);
    const OrthogonalSpec spec =
        of_columns ? OrthogonalSpec{.factor = 0.4f,
                                    .vectors = kColumns,
                                    .extent = kRows,
                                    .stride = 1,
                                    .step = kColumns}
                   : OrthogonalSpec{
                         .factor = 0.4f, .vectors = kRows, .extent = kColumns, .stride = kColumns, .step = 1};
    Doubles values = doubles_of(weights);
    const auto penalty = [&] {
      const auto at = [&](int64_t vector, int64_t k) {
        return values[static_cast<size_t>(vector * spec.stride + k * spec.step)];
      };
      const auto product = [&](int64_t a, int64_t b) {
        double sum = 0;
        for (int64_t k = 0; k < spec.extent; ++k) sum += at(a, k) * at(b, k);
        return sum;
      };
      double sum = 0;
      for (int64_t a = 0; a < spec.vectors; ++a)
        for (int64_t b = 0; b < a; ++b)
          sum += std::abs(product(a, b)) / std::sqrt(product(a, a) * product(b, b));
      return 0.4 * sum / (static_cast<double>(spec.vectors * (spec.vectors - 1)) / 2);
    };
    const auto own = device.array(weights);
    const auto total = device.array(Doubles{5});
    device.ops().add_orthogonal_penalty(spec, own.data(), total.data());
    CHECK(total.read()[0] == doctest::Approx(5 + penalty()).epsilon(1e-6));
    const Floats before = device.random(kCount, 2);
    Doubles expected = doubles_of(before);
    for (size_t i = 0; i < expected.size(); ++i) {
      constexpr double kStep = 1e-5;
      double& value = values[kFirst + i];
      const double x = value;
      value = x + kStep;
      const double above = penalty();
      value = x - kStep;
      expected[i] += 8 * (above - penalty()) / (2 * kStep);
      value = x;
    }
    const auto state = state_of(device, {.loss_scale = 8});
    const auto gradient = device.array(before);
    device.ops().add_orthogonal_gradient(spec,
                                         {.rule = {},
                                          .row_weights = nullptr,
                                          .state = state.data(),
                                          .weights = own.data(),
                                          .gradient = gradient.data(),
                                          .n = kCount},
                                         kFirst);
    check_close(gradient.read(), expected, 1e-5);
  }
}

DEVICE_TEST_CASE("a vector of zeros has no orthogonal penalty") {
  const OrthogonalSpec spec{.factor = 1, .vectors = 2, .extent = 2, .stride = 2, .step = 1};
  const auto own = device.array(Floats{0, 0, 1, 2});
  const auto total = device.array(Doubles{0});
  const auto state = state_of(device, {});
  const auto gradient = device.array(Floats{1, 2, 3, 4});
  device.ops().add_orthogonal_penalty(spec, own.data(), total.data());
  device.ops().add_orthogonal_gradient(spec,
                                       {.rule = {},
                                        .row_weights = nullptr,
                                        .state = state.data(),
                                        .weights = own.data(),
                                        .gradient = gradient.data(),
                                        .n = 4},
                                       0);
  CHECK(total.read() == Doubles{0});
  CHECK(gradient.read() == Floats{1, 2, 3, 4});
}

DEVICE_TEST_CASE("the penalty of activations and its gradient") {
  for (const int64_t n : {1, 100, 70001}) {
    Floats values = device.random(n, 1);
    values[0] = 0;
    double expected = 5;
    Doubles gradient;
    for (const float value : values) {
      const auto x = static_cast<double>(value);
      expected += 0.3 * std::abs(x) + 0.7 * x * x;
      gradient.push_back(8 * (0.3 * (x > 0 ? 1 : x < 0 ? -1 : 0) + 1.4 * x));
    }
    const TypedArray own = device.typed(values), found = device.typed(values.size());
    const auto total = device.array(Doubles{5});
    const auto loss_scale = device.array(Floats{8});
    device.ops().add_activity_penalty(kPenalty, own.data(), total.data(), n);
    CHECK(total.read()[0] == doctest::Approx(expected).epsilon(1e-6));
    device.ops().activity_gradient(kPenalty, loss_scale.data(), own.data(), found.data(), n);
    check_close(found.read(), gradient, device.tolerance(1e-6));
  }
}

DEVICE_TEST_CASE("a penalty's gradient has the scale of the gradient before the update") {
  const int64_t n = 1001;
  Floats weights = device.random(n, 1);
  weights[3] = 0;
  const Floats before = device.random(n, 2);
  // The batch has 10 rows with a total weight of 4. The update therefore multiplies the gradient by 10 / 4 /
  // loss_scale.
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
  struct Sizes {
    size_t outer, extent, inner;
  };
  // On a GPU, a column has from 1 to all threads of a block, and the columns of a block are neighbors or not.
  for (const auto& [outers, extent, inners] :
       {Sizes{3, 50, 131}, {2, 3, 1}, {1, 9, 700}, {5, 130, 1}, {1, 5000, 1}, {3, 700, 2}, {90, 40, 3}}) {
    CAPTURE(extent);
    const ConstraintSpec spec{.max = 2,
                              .outer = static_cast<int64_t>(outers),
                              .extent = static_cast<int64_t>(extent),
                              .inner = static_cast<int64_t>(inners)};
    const Floats weights = device.random(spec.outer * spec.extent * spec.inner, 1);
    Floats expected = weights;
    for (size_t outer = 0; outer < outers; ++outer)
      for (size_t inner = 0; inner < inners; ++inner) {
        const auto at = [&](size_t k) -> float& { return expected[(outer * extent + k) * inners + inner]; };
        double squares = 0;
        for (size_t k = 0; k < extent; ++k)
          squares += static_cast<double>(at(k)) * static_cast<double>(at(k));
        const double norm = std::sqrt(squares);
        for (size_t k = 0; k < extent; ++k) at(k) *= static_cast<float>(std::min(norm, 2.0) / (norm + 1e-7));
      }
    const auto own = device.array(weights);
    const auto state = state_of(device, {});
    device.ops().constrain(spec, state.data(), own.data(), nullptr);
    check_close(own.read(), expected, 1e-5);
  }
}

}  // namespace dtrain::test
