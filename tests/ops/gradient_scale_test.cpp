// Tests the gradient scale, which combines clipping by norm and loss scaling for float16.
#include <limits>

#include <doctest/doctest.h>

#include "ops/fixture.h"

namespace dtrain::test {
namespace {

constexpr GradientRule kClips{.clip_norm = 2, .dynamic_scaling = false};
constexpr GradientRule kScales{.clip_norm = 0, .dynamic_scaling = true};
constexpr GradientRule kBoth{.clip_norm = 2, .dynamic_scaling = true};

/// Returns the gradient scale after a step. `before` is the scale before the step, and `squares` is the sum
/// of squares of the step's gradient.
GradientScale scale_after(const Device& device, const GradientRule& rule, double squares,
                          const GradientScale& before = {}) {
  const StepNumbers now{.step = 5, .learning_rate = 0.5, .decay = 0.25f};
  const auto state = device.array(std::vector<StepState>{{now, before}});
  const auto own_squares = device.array(Doubles{squares});
  device.ops().update_gradient_scale(rule, own_squares.data(), nullptr, state.data());
  const StepState after = state.read()[0];
  CHECK(after.now.step == now.step);
  CHECK(after.now.learning_rate == now.learning_rate);
  CHECK(after.now.decay == now.decay);
  return after.gradient;
}

}  // namespace

DEVICE_TEST_CASE("a gradient is clipped by its norm") {
  for (const double squares : {0.0, 1.0, 4.0}) {
    CHECK(scale_after(device, kClips, squares).gradient_scale == 1);
    CHECK(scale_after(device, {}, squares).gradient_scale == 1);
  }
  CHECK(scale_after(device, kClips, 16).gradient_scale == 0.5f);
  CHECK(scale_after(device, kClips, 1e10).gradient_scale == doctest::Approx(2e-5));
  CHECK(scale_after(device, {}, 1e10).gradient_scale == 1);
  const GradientScale after = scale_after(device, kClips, 1e10);
  CHECK(after.loss_scale == 1);
  CHECK(after.good_steps == 0);
  CHECK(after.skip == 0);
}

DEVICE_TEST_CASE("a gradient is divided by the sum of weights before it is clipped") {
  // The batch has 10 rows with a total weight of 4. The gradient is therefore scaled by 10 / 4.
  const auto worth = [&](GradientRule rule, double weights, double squares, float loss_scale) {
    rule.is_weighted = true;
    const auto state =
        device.array(std::vector<StepState>{{{.row_weights = 10}, {.loss_scale = loss_scale}}});
    const auto own_weights = device.array(Doubles{weights}), own_squares = device.array(Doubles{squares});
    const bool norm = rule.clip_norm > 0 || rule.dynamic_scaling;
    device.ops().update_gradient_scale(rule, norm ? own_squares.data() : nullptr, own_weights.data(),
                                       state.data());
    return state.read()[0].gradient.gradient_scale;
  };
  CHECK(worth({}, 4, 1e10, 1) == 2.5f);
  CHECK(worth({}, 4, 1e10, 8) == 2.5f / 8);
  // The losses have the gradient 0, and the gradient of penalties is not scaled.
  CHECK(worth({}, 0, 0, 1) == 1);
  CHECK(worth(kClips, 4, 0.64, 1) == 2.5f);  // scaling changes the norm from 0.8 to 2
  CHECK(worth(kClips, 4, 16, 1) == 0.5f);    // scaling changes the norm from 4 to 10, which is clipped to 2
  CHECK(worth(kBoth, 4, 16 * 64, 8) == 0.0625f);
}

DEVICE_TEST_CASE("a step without row weights is skipped, also if the host knows their sum") {
  const auto after = [&](double sum, bool by_host) {
    const auto state = device.array(std::vector<StepState>{
        {{.row_weights = by_host ? sum : 10}, {.loss_scale = 8, .gradient_scale = 77}}});
    const auto own_weights = device.array(Doubles{sum});
    device.ops().update_gradient_scale({.is_weighted = !by_host, .skips_unweighted = true}, nullptr,
                                       by_host ? nullptr : own_weights.data(), state.data());
    return state.read()[0].gradient;
  };
  for (const bool by_host : {false, true}) {
    CAPTURE(by_host);
    CHECK(after(0, by_host).skip == 1);
    CHECK(after(0, by_host).gradient_scale == 0);
    CHECK(after(0, by_host).loss_scale == 8);
    CHECK(after(4, by_host).skip == 0);
    CHECK(after(4, by_host).gradient_scale == (by_host ? 1 : 2.5f) / 8);
  }
}

DEVICE_TEST_CASE("the loss scale is removed from the gradient and from its norm before clipping") {
  const GradientScale before{.loss_scale = 8, .gradient_scale = 77, .good_steps = 1, .skip = 1};
  CHECK(scale_after(device, kScales, 1e6, before).gradient_scale == 0.125f);
  // The loss scale is 8. After the division by it, the norm is 2 instead of 16, and 4 instead of 32.
  CHECK(scale_after(device, kBoth, 256, before).gradient_scale == 0.125f);
  CHECK(scale_after(device, kBoth, 1024, before).gradient_scale == 0.0625f);
  const GradientScale after = scale_after(device, kBoth, 1024, before);
  CHECK(after.loss_scale == 8);
  CHECK(after.good_steps == 2);
  CHECK(after.skip == 0);
}

DEVICE_TEST_CASE("an overflowing gradient is skipped and halves the loss scale down to 1") {
  for (const GradientRule& rule : {kScales, kBoth}) {
    for (const double squares : {std::numeric_limits<double>::infinity(), std::nan("")}) {
      const GradientScale before{.loss_scale = 8, .gradient_scale = 0.125f, .good_steps = 100, .skip = 0};
      const GradientScale after = scale_after(device, rule, squares, before);
      CHECK(after.skip != 0);
      CHECK(after.loss_scale == 4);
      CHECK(after.good_steps == 0);
      CHECK(scale_after(device, rule, squares, {}).loss_scale == 1);
      // The next gradient is finite and is applied.
      const GradientScale next = scale_after(device, rule, 1, after);
      CHECK(next.skip == 0);
      CHECK(next.gradient_scale == 0.25f);
      CHECK(next.good_steps == 1);
    }
  }
}

DEVICE_TEST_CASE("after 2000 good steps the loss scale doubles, from the next step on") {
  const GradientScale before{.loss_scale = 8, .gradient_scale = 1, .good_steps = 1998, .skip = 0};
  const GradientScale last_but_one = scale_after(device, kScales, 1, before);
  CHECK(last_but_one.loss_scale == 8);
  CHECK(last_but_one.good_steps == 1999);
  const GradientScale last = scale_after(device, kScales, 1, last_but_one);
  CHECK(last.loss_scale == 16);
  CHECK(last.gradient_scale == 0.125f);
  CHECK(last.good_steps == 0);
  CHECK(scale_after(device, kScales, 1, last).gradient_scale == 0.0625f);
}

DEVICE_TEST_CASE("without dynamic scaling a NaN gradient reaches the weights") {
  const GradientScale after = scale_after(device, kClips, std::nan(""));
  CHECK(after.skip == 0);
  CHECK(after.loss_scale == 1);
  CHECK(after.gradient_scale == 1);
}

DEVICE_TEST_CASE("norm, gradient scale and update run without the host in between") {
  const Floats gradient{3, 4, 0, 0};
  const auto own_gradient = device.array(gradient);
  const auto weights = device.array(Floats(4, 1));
  const auto squares = device.array(Doubles{NAN});
  const auto state = device.array(std::vector<StepState>{{.now = {.learning_rate = 0.5}, .gradient = {}}});
  device.ops().sum_of_squares(own_gradient.data(), squares.data(), 4);
  device.ops().update_gradient_scale(kClips, squares.data(), nullptr, state.data());
  device.ops().update(math::Sgd{}, {.state = state.data(),
                                    .weights = weights.data(),
                                    .gradient = own_gradient.data(),
                                    .slots = {},
                                    .n = 4});
  check_close(weights.read(), Doubles{1 - 0.5 * 3 * 0.4, 1 - 0.5 * 4 * 0.4, 1, 1}, 1e-6);
}

}  // namespace dtrain::test
