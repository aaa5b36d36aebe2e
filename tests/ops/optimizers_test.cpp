#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include <doctest/doctest.h>

#include "ops/fixture.h"
#include "ops/math/pairwise.h"
#include "ops/optimizers_reference.h"

namespace dtrain::test {
using namespace optimizers;

namespace {

/// Weights, slots and state in device memory, for one rule.
struct Trained {
  Trained(const Device& on, const Case& by, const Floats& initial)
      : device(on),
        optimizer(by),
        n(static_cast<int64_t>(initial.size())),
        weights(device.array(initial)),
        copy(device.typed(initial)) {
    for (size_t s = 0; s < optimizer.slots; ++s) {
      slots.push_back(device.array(Floats(initial.size())));
      pointers.push_back(slots.back().data());
    }
  }

  /// Updates the weights. If the compute type is not float32, the weights have a copy in the compute type, in
  /// a separate array.
  void step(const StepState& state, const Floats& gradient, const GroupRule& group = {}) {
    run(state, gradient, group,
        [&](const UpdateArguments& args) { device.ops().update(optimizer.rule, args); });
  }
  void apply_directions(const math::DirectionRule& rule, const StepState& state, const Floats& direction,
                        std::span<const ParameterPart> parts, const double* squares,
                        const GroupRule& group = {}) {
    run(state, direction, group,
        [&](const UpdateArguments& args) { device.ops().apply_directions(rule, parts, squares, args); });
  }
  template <class Use>
  void run(const StepState& state, const Floats& gradient, const GroupRule& group, Use&& use) {
    const auto own_state = device.array(std::vector<StepState>{state});
    const auto own_gradient = device.array(gradient);
    const bool copies = device.math.type != DType::float32;
    use(UpdateArguments{.state = own_state.data(),
                        .group = group,
                        .weights = weights.data(),
                        .gradient = own_gradient.data(),
                        .slots = pointers,
                        .weights_copy = copies ? copy.data() : nullptr,
                        .n = n});
    if (copies) CHECK(copy.read() == device.kept(weights.read()));
  }

  const Device& device;
  const Case& optimizer;
  int64_t n;
  Array<float> weights;
  TypedArray copy;
  std::vector<Array<float>> slots;
  std::vector<float*> pointers;
};

StepState state_of(const Case& optimizer) {
  return {.now = {.step = kSteps - 1, .learning_rate = static_cast<double>(optimizer.rate), .decay = 0.001f},
          .gradient = {.loss_scale = 16, .gradient_scale = 0.5f, .good_steps = 3, .skip = 0}};
}

void check_sums_of_squares(Device& device) {
  for (const int64_t n : {0, 1, 1000, 4096, 4097, 100003, 5000011, 17000003}) {
    CAPTURE(n);
    device.shift = n == 1000 ? 1 : 0;
    const Floats values = random_floats(n, 1);
    const auto own = device.array(values);
    // The expected sum is a pairwise sum: a binary tree over grains of the array. The array is padded with
    // zeros.
    const auto tree = [&](const auto& self, int64_t begin, int64_t size) -> double {
      if (begin >= n) return 0.0;
      if (size > math::kSquaresGrain)
        return self(self, begin, size / 2) + self(self, begin + size / 2, size / 2);
      float grain[math::kSquaresGrain] = {};
      std::copy_n(values.begin() + begin, std::min(size, n - begin), grain);
      return math::grain_of_squares(grain);
    };
    const double expected = tree(tree, 0, math::kSquaresGrain << 21);
    for (int i = 0; i < 5; ++i) {
      const auto squares = device.array(Doubles{-7});
      device.ops().sum_of_squares(own.data(), squares.data(), n);
      CHECK(squares.read()[0] == expected);
    }
    long double plain = 0;
    for (const float value : values)
      plain += static_cast<long double>(value) * static_cast<long double>(value);
    CHECK(expected == doctest::Approx(static_cast<double>(plain)).epsilon(1e-12));
  }
}

}  // namespace

DEVICE_TEST_CASE("optimizer steps match the reference") {
  for (const Case& optimizer : kCases) {
    CAPTURE(optimizer.name);
    // Updates of moving averages are not scaled, and moving averages have no weight decay.
    const bool average = !traits_of(optimizer.rule).of_gradient;
    CHECK(static_cast<size_t>(traits_of(optimizer.rule).slots) == optimizer.slots);
    const StepState state = state_of(optimizer);
    const double scale = average ? 1 : static_cast<double>(state.gradient.gradient_scale),
                 decay = average ? 0 : static_cast<double>(state.now.decay);
    for (const int64_t n : {1, 37, 20011}) {
      device.shift = n == 37 ? 1 : 0;
      const Floats initial = device.kept(random_floats(n, 1));
      Trained trained(device, optimizer, initial);
      std::vector<Element> elements(initial.size());
      for (size_t i = 0; i < elements.size(); ++i) elements[i].w = static_cast<double>(initial[i]);
      for (uint64_t t = 0; t < 3; ++t) {
        const Floats gradient = random_floats(n, 10 + t);
        trained.step(state, gradient, {.slots_since = optimizer.slots_since});
        for (size_t i = 0; i < elements.size(); ++i) {
          elements[i].w -= decay * elements[i].w;
          optimizer.reference(elements[i], scale * static_cast<double>(gradient[i]));
        }
      }
      Doubles expected(initial.size());
      for (size_t i = 0; i < elements.size(); ++i) expected[i] = elements[i].w;
      check_close(trained.weights.read(), expected, 2e-6);
      for (size_t s = 0; s < optimizer.slots; ++s) {
        for (size_t i = 0; i < elements.size(); ++i) expected[i] = elements[i].s[s];
        check_close(trained.slots[s].read(), expected, 2e-6);
      }
    }
  }
}

DEVICE_TEST_CASE("each group has a separate learning rate and weight decay, and clips each element") {
  const Case& sgd = kCases[0];
  const StepState state = state_of(sgd);
  const GroupRule group{
      .learning_rate_factor = 0.5f, .own_weight_decay = true, .weight_decay = 0.1f, .clip_value = 0.25f};
  for (const int64_t n : {1, 37, 20011}) {
    const Floats initial = device.kept(random_floats(n, 1)), gradient = random_floats(n, 2);
    Trained trained(device, sgd, initial);
    trained.step(state, gradient, group);
    Doubles expected;
    for (size_t i = 0; i < initial.size(); ++i) {
      const double w = static_cast<double>(initial[i]), g = 0.5 * static_cast<double>(gradient[i]);
      expected.push_back(w - 0.5 * 0.1 * 0.1 * w - 0.5 * 0.1 * std::clamp(g, -0.25, 0.25));
    }
    check_close(trained.weights.read(), expected, 2e-6);
  }
  if (device.math.type != DType::float32) return;  // step() compares the copy, and NaN is not equal to NaN
  Trained trained(device, sgd, {1.0f});
  trained.step(state, {NAN}, group);
  CHECK(std::isnan(trained.weights.read()[0]));
}

DEVICE_TEST_CASE("a step by the trust ratio has the parameter's norm times the learning rate") {
  const StepState state{.now = {.learning_rate = 0.5, .decay = 0.001f}, .gradient = {.gradient_scale = 16}};
  const GroupRule group{.learning_rate_factor = 7, .clip_value = 1e-6f};  // this step ignores these options
  const auto moved_by = [&](double weight_squares, double direction_squares) {
    const auto squares = device.array(Doubles{weight_squares, direction_squares});
    const ParameterPart part{.n = 2, .elements = 2, .learning_rate_factor = 0.5f};
    Trained trained(device, kCases[0], {1.0f, -2.0f});
    trained.apply_directions({}, state, {0.5f, 2.0f}, {&part, 1}, squares.data(), group);
    return trained.weights.read();
  };
  check_close(moved_by(9, 4), Doubles{1 - 0.25 * 1.5 * 0.5, -2 - 0.25 * 1.5 * 2}, 1e-6);
  check_close(moved_by(0, 4), Doubles{1 - 0.25 * 0.5, -2 - 0.25 * 2}, 1e-6);
  check_close(moved_by(9, 0), Doubles{1 - 0.25 * 0.5, -2 - 0.25 * 2}, 1e-6);
}

DEVICE_TEST_CASE("steps by the trust ratios of many parameters match the reference") {
  const StepState state{.now = {.learning_rate = 0.5}, .gradient = {}};
  for (const bool odd : {false, true}) {
    CAPTURE(odd);
    std::vector<ParameterPart> parts;
    Doubles squares, expected;
    int64_t n = 0;
    for (int64_t i = 0; i < 450; ++i) {
      const auto factor = static_cast<float>(1 + i % 3);
      parts.push_back({i % 100 == 7 ? 20011 / 16 * 16 : 16 * (i % 5), 1, factor});
      if (odd) parts.back().n += i % 4;
      squares.insert(squares.end(), {static_cast<double>(1 + i), 4.0});
      n += parts.back().n;
    }
    const Floats initial = random_floats(n, 1), direction = random_floats(n, 2);
    for (size_t i = 0; i < parts.size(); ++i) {
      const double step =
          0.5 * static_cast<double>(parts[i].learning_rate_factor) * std::sqrt(squares[2 * i]) / 2;
      for (int64_t k = 0; k < parts[i].n; ++k) {
        const size_t at = expected.size();
        expected.push_back(static_cast<double>(initial[at]) - step * static_cast<double>(direction[at]));
      }
    }
    const auto own_squares = device.array(squares);
    Trained trained(device, kCases[0], initial);
    trained.apply_directions({}, state, direction, parts, own_squares.data());
    check_close(trained.weights.read(), expected, 2e-6);
  }
}

DEVICE_TEST_CASE("adafactor's step has the parameter's root mean square, and a limited direction and rate") {
  const math::DirectionRule rule = kAdafactor.direction_rule();  // epsilon_2 0.001, clip_threshold 0.5
  const auto moved_by = [&](uint64_t step, double weight_squares, double direction_squares) {
    const StepState state{.now = {.step = step, .learning_rate = 0.5}, .gradient = {}};
    const auto squares = device.array(Doubles{weight_squares, direction_squares});
    const ParameterPart part{.n = 1, .elements = 4, .learning_rate_factor = 0.25f};
    Trained trained(device, kCases[0], {0.0f});
    trained.apply_directions(rule, state, {-1.0f}, {&part, 1}, squares.data());
    return static_cast<double>(trained.weights.read()[0]);
  };
  const auto is = [](double found, double expected) {
    CHECK(found == doctest::Approx(expected).epsilon(1e-6));
  };
  is(moved_by(0, 36, 0.25), 0.25 * 3 * 0.5);  // the rms of the weights is 3, the rms of the direction is 0.25
  is(moved_by(0, 0, 0.25), 0.25 * 0.001 * 0.5);         // the weights are 0
  is(moved_by(0, 36, 16), 0.25 * 3 * 0.5 / (2 / 0.5));  // the rms of the direction is 2
  is(moved_by(3, 36, 0.25), 0.25 * 3 * 0.5);            // the rate is 1 / sqrt(4)
  is(moved_by(8, 36, 0.25), 0.25 * 3 / 3.0);            // the rate is 1 / sqrt(9)
}

DEVICE_TEST_CASE("sums of squares of many arrays equal those of each array") {
  const Floats values = random_floats(40 * 1000, 1);
  const auto own = device.array(values);
  std::vector<std::span<const float>> arrays;
  for (size_t i = 0; i < 300; ++i) arrays.emplace_back(own.data() + 16 * i, i % 50 == 3 ? 30000 : 13 * i);
  const auto together = device.array(Doubles(arrays.size(), NAN)),
             alone = device.array(Doubles(arrays.size(), NAN));
  device.ops().sums_of_squares(arrays, together.data());
  for (size_t i = 0; i < arrays.size(); ++i)
    device.ops().sum_of_squares(arrays[i].data(), alone.data() + i, static_cast<int64_t>(arrays[i].size()));
  CHECK(together.read() == alone.read());
  CHECK(together.read().back() > 0);
}

DEVICE_TEST_CASE("a skipped step changes nothing") {
  for (const Case& optimizer : kCases) {
    CAPTURE(optimizer.name);
    const Floats initial = device.kept(random_floats(1025, 1));
    Trained trained(device, optimizer, initial);
    StepState state = state_of(optimizer);
    state.gradient.skip = 1;
    trained.step(state, Floats(initial.size(), INFINITY));
    CHECK(trained.weights.read() == initial);
    for (const auto& slot : trained.slots) CHECK(slot.read() == Floats(initial.size()));
  }
}

DEVICE_TEST_CASE("sums of squares have the same bits in every call and on every device") {
  check_sums_of_squares(device);
}

TEST_CASE("sums of squares have the same bits with every instruction set and number of threads") {
  on_every_cpu(check_sums_of_squares);
}

}  // namespace dtrain::test
