#include <algorithm>
#include <array>
#include <limits>

#include <doctest/doctest.h>

#include "ops/fixture.h"
#include "ops/math/functions.h"

namespace dtrain::test {
namespace {

// No element, one element, odd numbers, and a number that is large enough for several threads.
constexpr int64_t kSizes[] = {0, 1, 7, 16, 1025, 20011};

struct ActivationCase {
  ActivationSpec spec;
  double (*reference)(double x);
};

double gelu_by_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

const ActivationCase kActivations[] = {
    {.spec = {.kind = Activation::linear}, .reference = [](double x) { return x; }},
    {.spec = {.kind = Activation::relu}, .reference = [](double x) { return std::max(x, 0.0); }},
    {.spec = {.kind = Activation::leaky_relu, .alpha = 0.25f},
     .reference = [](double x) { return x < 0 ? 0.25 * x : x; }},
    {.spec = {.kind = Activation::gelu},
     .reference = [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
    {.spec = {.kind = Activation::gelu, .approximate = true}, .reference = gelu_by_tanh},
    {.spec = {.kind = Activation::silu}, .reference = [](double x) { return x / (1 + std::exp(-x)); }},
    {.spec = {.kind = Activation::tanh}, .reference = [](double x) { return std::tanh(x); }},
    {.spec = {.kind = Activation::sigmoid}, .reference = [](double x) { return 1 / (1 + std::exp(-x)); }},
    {.spec = {.kind = Activation::elu, .alpha = 0.5f},
     .reference = [](double x) { return x < 0 ? 0.5 * std::expm1(x) : x; }},
    {.spec = {.kind = Activation::clipped_relu, .maximum = 6},
     .reference = [](double x) { return std::clamp(x, 0.0, 6.0); }},
    {.spec = {.kind = Activation::clipped_relu, .alpha = 0.25f, .maximum = 5},
     .reference = [](double x) { return x > 0 ? std::min(x, 5.0) : 0.25 * x; }},
    {.spec = {.kind = Activation::clipped_relu, .alpha = 0.25f, .maximum = 3.3f, .threshold = 1.5f},
     .reference =
         [](double x) { return x > 1.5 ? std::min(x, static_cast<double>(3.3f)) : 0.25 * (x - 1.5); }},
    {.spec = {.kind = Activation::clipped_relu, .threshold = 1},
     .reference = [](double x) { return x > 1 ? x : 0; }},
    {.spec = {.kind = Activation::softplus},
     .reference = [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }},
    {.spec = {.kind = Activation::softsign}, .reference = [](double x) { return x / (1 + std::abs(x)); }},
    {.spec = {.kind = Activation::hard_sigmoid, .alpha = 0.2f},
     .reference = [](double x) { return std::clamp(static_cast<double>(0.2f) * x + 0.5, 0.0, 1.0); }},
    {.spec = {.kind = Activation::hard_silu},
     .reference = [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
    {.spec = {.kind = Activation::selu},
     .reference =
         [](double x) { return 1.0507009873554805 * (x < 0 ? 1.6732632423543772 * std::expm1(x) : x); }},
    {.spec = {.kind = Activation::exponential}, .reference = [](double x) { return std::exp(x); }},
    {.spec = {.kind = Activation::mish},
     .reference =
         [](double x) { return x * std::tanh(std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)))); }},
};

/// Returns true if the function has a kink or a jump at x, and is therefore not differentiable at x.
bool is_kink(const ActivationCase& activation, double x) {
  constexpr double kStep = 1e-7;
  const double at = activation.reference(x), right = activation.reference(x + kStep) - at,
               left = at - activation.reference(x - kStep);
  return std::abs(right - left) > 1e-2 * kStep;
}

/// Returns small, medium and extreme values.
Floats inputs_of(int64_t n) {
  Floats x = random_floats(n, 1, 8);
  const float special[] = {100, -100, 1e-6f, -1e-6f, 0.03f, -0.03f, 20, -20, 0.6f, -0.7f};
  for (size_t i = 0; i < x.size() && i < std::size(special); ++i) x[i] = special[i];
  return x;
}

}  // namespace

TEST_CASE("functions are accurate to a few units in the last place") {
  struct Function {
    const char* name;
    float (*found)(float);
    double (*expected)(double);
    float from, to;
  };
  const Function functions[] = {
      {"exp", [](float x) { return math::exp(x); }, [](double x) { return std::exp(x); }, -87, 88.7f},
      {"log", [](float x) { return math::log(x); }, [](double x) { return std::log(x); }, 1e-6f, 1e6f},
      {"log", [](float x) { return math::log(x); }, [](double x) { return std::log(x); }, 0.5f, 2},
      {"log1p", [](float x) { return math::log1p(x); }, [](double x) { return std::log1p(x); }, 1e-7f, 1},
      {"tanh", [](float x) { return math::tanh(x); }, [](double x) { return std::tanh(x); }, -12, 12},
      {"erf", [](float x) { return math::erf(x); }, [](double x) { return std::erf(x); }, -5, 5},
  };
  for (const Function& function : functions) {
    double worst = 0;
    for (int i = 0; i <= 200000; ++i) {
      const float x = function.from + (function.to - function.from) * static_cast<float>(i) / 200000.0f;
      const double expected = function.expected(static_cast<double>(x));
      const double unit = std::ldexp(1.0, std::max(-126, std::ilogb(expected)) - 23);
      worst = std::max(worst, std::abs(static_cast<double>(function.found(x)) - expected) / unit);
    }
    CAPTURE(function.name);
    CHECK(worst <= 4.0);
  }
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                  kInfinity = std::numeric_limits<float>::infinity();
  for (const Function& function : functions) CHECK(std::isnan(function.found(kNan)));
  CHECK(math::exp(kInfinity) == kInfinity);
  CHECK(math::exp(89.0f) == kInfinity);
  CHECK(math::exp(-kInfinity) <= std::numeric_limits<float>::min());
  CHECK(math::log(0.0f) == -kInfinity);
  CHECK(math::log(kInfinity) == kInfinity);
  CHECK(std::isnan(math::log(-1.0f)));
  CHECK(math::tanh(kInfinity) == 1.0f);
  CHECK(math::tanh(-kInfinity) == -1.0f);
  CHECK(math::erf(-kInfinity) == -1.0f);
}

DEVICE_TEST_CASE("activations and their gradients match the reference") {
  Ops& ops = device.ops();
  for (const ActivationCase& activation : kActivations) {
    CAPTURE(static_cast<int>(activation.spec.kind));
    for (const int64_t n : kSizes) {
      CAPTURE(n);
      device.shift = n % 2 ? 1 : 0;
      Floats x = device.kept(inputs_of(n));
      if (activation.spec.kind == Activation::exponential)  // keeps results in the range of float16
        for (float& value : x) value = std::min(value, 5.0f);
      for (float& value : x)
        if (is_kink(activation, static_cast<double>(value))) value += 0.25f;
      const Floats diff = device.random(n, 2);
      Doubles expected(x.size()), expected_diff(x.size());
      for (size_t i = 0; i < x.size(); ++i) {
        const double at = static_cast<double>(x[i]), step = 1e-7;
        expected[i] = activation.reference(at);
        expected_diff[i] = static_cast<double>(diff[i]) *
                           (activation.reference(at + step) - activation.reference(at - step)) / (2 * step);
      }
      const TypedArray own_x = device.typed(x), own_diff = device.typed(diff), y = device.typed(x.size()),
                       dx = device.typed(x.size());
      ops.activation_forward(activation.spec, own_x.data(), y.data(), n);
      check_close(y.read(), expected, device.tolerance(1e-6));
      const void* saved = from_output(activation.spec) ? y.data() : own_x.data();
      ops.activation_backward(activation.spec, saved, own_diff.data(), dx.data(), n);
      check_close(dx.read(), expected_diff, device.tolerance(3e-6, 4));
      ops.activation_backward(activation.spec, saved, own_diff.data(), own_diff.data(), n);
      CHECK(own_diff.read() == dx.read());
    }
  }
}

DEVICE_TEST_CASE("NaN and infinity pass through activations") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                  kInfinity = std::numeric_limits<float>::infinity();
  for (const ActivationCase& activation : kActivations) {
    CAPTURE(static_cast<int>(activation.spec.kind));
    const auto of = [&](float x) {
      const TypedArray values = device.typed(Floats(17, x));
      device.ops().activation_forward(activation.spec, values.data(), values.data(), 17);
      return values.read();
    };
    for (const float value : of(kNan)) CHECK(std::isnan(value));
    if (activation.spec.kind == Activation::softsign) continue;  // infinity / infinity
    const double large = activation.reference(1e6);  // close to the limit of the function, if it has one
    const bool bounded = large < 1000;
    const float limit = bounded ? device.kept({static_cast<float>(large)})[0] : kInfinity;
    for (const float value : of(kInfinity)) CHECK(value == limit);
    if (activation.spec.kind != Activation::clipped_relu || activation.spec.alpha != 0) continue;
    for (const float value : of(-kInfinity)) CHECK(value == 0);
  }
}

DEVICE_TEST_CASE("sums and products match the reference") {
  using Sources = std::array<const void*, 3>;
  for (const int64_t n : kSizes) {
    device.shift = n % 2 ? 1 : 0;
    const Floats a = device.random(n, 1), b = device.random(n, 2), c = device.random(n, 3);
    Doubles sum(a.size()), relu_sum(a.size()), product(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]),
                   z = static_cast<double>(c[i]);
      sum[i] = x + y + z;
      relu_sum[i] = std::max(x + y, 0.0);
      product[i] = x * y * z;
    }
    const TypedArray own_a = device.typed(a), own_b = device.typed(b), own_c = device.typed(c),
                     dst = device.typed(a.size());
    const Sources three{own_a.data(), own_b.data(), own_c.data()};
    device.ops().sum(dst.data(), three, {}, n);
    check_close(dst.read(), sum, device.tolerance(1e-6));
    device.ops().multiply(dst.data(), three, n);
    check_close(dst.read(), product, device.tolerance(1e-6));
    device.ops().sum(own_a.data(), std::array<const void*, 2>{own_a.data(), own_b.data()},
                     {Activation::relu, 0, false}, n);
    check_close(own_a.read(), relu_sum, device.tolerance(1e-6));
    device.ops().multiply(own_c.data(), Sources{own_b.data(), own_c.data(), own_c.data()}, n);
    for (size_t i = 0; i < a.size(); ++i)
      product[i] = static_cast<double>(b[i]) * static_cast<double>(c[i]) * static_cast<double>(c[i]);
    check_close(own_c.read(), product, device.tolerance(1e-6));
  }
}

DEVICE_TEST_CASE("arrays are copied, filled and added") {
  for (const int64_t n : kSizes) {
    device.shift = n % 2 ? 1 : 0;
    const Floats a = device.random(n, 1), b = device.random(n, 2);
    Doubles mixed(a.size());
    for (size_t i = 0; i < a.size(); ++i)
      mixed[i] = 0.5 * static_cast<double>(a[i]) - 2 * static_cast<double>(b[i]);
    const Array<float> own_a = device.array(a), own_b = device.array(b), dst = device.floats(a.size());
    device.ops().scale_add(own_b.data(), own_a.data(), 0.5f, -2, n);
    check_close(own_b.read(), mixed, 1e-6);
    device.ops().scale_add(dst.data(), own_a.data(), 1, 0, n);
    CHECK(dst.read() == a);
    device.ops().fill(dst.data(), 3, n);
    CHECK(dst.read() == Floats(a.size(), 3));
    const TypedArray from = device.typed(b), to = device.typed(a.size());
    device.ops().copy(to.data(), from.data(), n);
    CHECK(to.read() == b);
  }
}

DEVICE_TEST_CASE("the sum of several readers' gradients is passed through the activation's derivative") {
  for (const int64_t n : kSizes) {
    const Floats y = device.random(n, 1), a = device.random(n, 2), b = device.random(n, 3),
                 c = device.random(n, 4);
    Doubles sum(y.size()), expected(y.size());
    for (size_t i = 0; i < y.size(); ++i) {
      sum[i] = static_cast<double>(a[i]) + static_cast<double>(b[i]) + static_cast<double>(c[i]);
      expected[i] = y[i] > 0 ? sum[i] : 0;
    }
    const TypedArray own_y = device.typed(y), own_a = device.typed(a), own_b = device.typed(b),
                     own_c = device.typed(c), dst = device.typed(y.size());
    const std::array<const void*, 3> three{own_a.data(), own_b.data(), own_c.data()};
    device.ops().sum_backward({}, nullptr, three, dst.data(), n);
    check_close(dst.read(), sum, device.tolerance(1e-6));
    device.ops().sum_backward({Activation::relu, 0, false}, own_y.data(), three, own_b.data(), n);
    check_close(own_b.read(), expected, device.tolerance(1e-6));
  }
}

DEVICE_TEST_CASE("one pass for the readers' gradients and the bias gradient equals two passes") {
  for (const auto& extent : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {1, 70}, {5, 3}, {33, 10}, {128, 512}, {3000, 64}, {20000, 7}}) {
    const auto rows = extent.first, columns = extent.second;
    CAPTURE(rows);
    CAPTURE(columns);
    const int64_t n = rows * columns;
    const TypedArray y = device.typed(device.random(n, 1)), a = device.typed(device.random(n, 2)),
                     b = device.typed(device.random(n, 3)), diff = device.typed(static_cast<size_t>(n));
    const auto own = device.floats(static_cast<size_t>(columns)),
               bias = device.floats(static_cast<size_t>(columns));
    for (const ActivationSpec& activation : {ActivationSpec{}, ActivationSpec{Activation::relu, 0, false},
                                             ActivationSpec{Activation::tanh, 0, false}}) {
      const std::array<const void*, 2> two{a.data(), b.data()};
      device.ops().sum_backward(activation, y.data(), two, diff.data(), n);
      device.ops().column_sum(own.data(), diff.data(), rows, columns);
      const Floats expected = diff.read();
      // The result may overwrite either gradient.
      const TypedArray sum = device.typed(b.read());
      const std::array<const void*, 2> again{a.data(), sum.data()};
      device.ops().sum_backward_bias(activation, y.data(), again, sum.data(), bias.data(), rows, columns);
      CHECK(sum.read() == expected);
      CHECK(bias.read() == own.read());
    }
  }
}

DEVICE_TEST_CASE("dropout depends only on the sample's index") {
  const Philox random = Philox::of(9, 3);
  const float rate = 0.3f;
  const auto step = device.array(std::vector<uint64_t>{77});
  for (const int64_t per_sample : {1, 4, 6, 63, 64, 70, 3001}) {
    CAPTURE(per_sample);
    const int64_t samples = 5;
    const uint64_t first = 1000;
    Floats expected(static_cast<size_t>(samples * per_sample));
    for (int64_t s = 0; s < samples; ++s) {
      for (int64_t e = 0; e < per_sample; ++e) {
        const uint64_t low = (first + static_cast<uint64_t>(s)) << 32 | static_cast<uint64_t>(e / 4);
        const bool kept = uniform01(random(77, low).v[e % 4]) >= rate;
        expected[static_cast<size_t>(s * per_sample + e)] = kept ? 1 / (1 - rate) : 0;
      }
    }
    expected = device.kept(expected);
    const TypedArray src = device.typed(Floats(expected.size(), 1));
    // A replica that has only the last two samples draws the same numbers for them.
    const TypedArray part = device.typed(static_cast<size_t>(2 * per_sample));
    device.ops().dropout(part.data(), src.data(), rate, random, step.data(), first + 3, 2, per_sample);
    CHECK(part.read() == Floats(expected.end() - 2 * per_sample, expected.end()));
    device.ops().dropout(src.data(), src.data(), rate, random, step.data(), first, samples, per_sample);
    CHECK(src.read() == expected);
  }
}

DEVICE_TEST_CASE("spatial dropout depends only on the sample's index and the channel") {
  const Philox random = Philox::of(9, 3);
  const float rate = 0.3f;
  const auto step = device.array(std::vector<uint64_t>{77});
  for (const int64_t channels : {1, 4, 6, 63, 64, 70, 301}) {
    for (const int64_t pixels : {1, 5, 40}) {
      CAPTURE(channels);
      CAPTURE(pixels);
      const int64_t samples = 5;
      const uint64_t first = 1000;
      Floats expected;
      for (int64_t i = 0; i < samples * pixels * channels; ++i) {
        const int64_t s = i / (pixels * channels), c = i % channels;
        const uint64_t low = (first + static_cast<uint64_t>(s)) << 32 | static_cast<uint64_t>(c / 4);
        expected.push_back(uniform01(random(77, low).v[c % 4]) >= rate ? 1 / (1 - rate) : 0);
      }
      expected = device.kept(expected);
      const TypedArray src = device.typed(Floats(expected.size(), 1));
      // A replica that has only the last two samples draws the same numbers for them.
      const int64_t two = 2 * pixels * channels;
      const TypedArray part = device.typed(static_cast<size_t>(two));
      device.ops().spatial_dropout(part.data(), src.data(), rate, random, step.data(), first + 3, 2, pixels,
                                   channels);
      CHECK(part.read() == Floats(expected.end() - two, expected.end()));
      device.ops().spatial_dropout(src.data(), src.data(), rate, random, step.data(), first, samples, pixels,
                                   channels);
      CHECK(src.read() == expected);
    }
  }
}

DEVICE_TEST_CASE("normally distributed noise depends only on the sample's index") {
  const Philox random = Philox::of(9, 3);
  const auto step = device.array(std::vector<uint64_t>{77});
  for (const bool multiplies : {false, true}) {
    const NoiseSpec noise{.multiplies = multiplies, .deviation = 0.25f};
    for (const int64_t per_sample : {1, 4, 6, 63, 64, 70, 3001}) {
      CAPTURE(multiplies);
      CAPTURE(per_sample);
      const int64_t samples = 5;
      const uint64_t first = 1000;
      const Floats x = device.random(samples * per_sample, 4, 2);
      Doubles expected;
      for (int64_t i = 0; i < samples * per_sample; ++i) {
        const int64_t s = i / per_sample, e = i % per_sample;
        const uint64_t low = (first + static_cast<uint64_t>(s)) << 32 | static_cast<uint64_t>(e / 4);
        const Philox::Block words = random(77, low);
        const uint32_t a = words.v[e % 4 / 2 * 2], b = words.v[e % 4 / 2 * 2 + 1];
        const double radius = std::sqrt(-2 * std::log((a + 0.5) / 0x1p32)), angle = 2 * M_PI * b / 0x1p32;
        const double z = radius * (e % 2 == 0 ? std::cos(angle) : std::sin(angle));
        const double value = static_cast<double>(x[static_cast<size_t>(i)]);
        expected.push_back(multiplies ? value * (1 + 0.25 * z) : value + 0.25 * z);
      }
      const TypedArray src = device.typed(x), part = device.typed(static_cast<size_t>(2 * per_sample));
      // A replica that has only the last two samples draws the same numbers for them.
      device.ops().gaussian_noise(part.data(), src.from(static_cast<size_t>(3 * per_sample)), noise, random,
                                  step.data(), first + 3, 2, per_sample);
      device.ops().gaussian_noise(src.data(), src.data(), noise, random, step.data(), first, samples,
                                  per_sample);
      const Floats found = src.read();
      check_close(found, expected, device.tolerance(3e-5));
      CHECK(part.read() == Floats(found.end() - 2 * per_sample, found.end()));
    }
  }
}

DEVICE_TEST_CASE("columns are rescaled by numbers in host memory") {
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{1, 1}, {10000, 1}, {7, 3}, {40, 256}, {3, 700}}) {
    CAPTURE(rows);
    CAPTURE(columns);
    const Floats x = device.random(rows * columns, 1), scale = random_floats(columns, 2),
                 offset = random_floats(columns, 3);
    Doubles expected;
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t c = i % static_cast<size_t>(columns);
      expected.push_back(static_cast<double>(x[i]) * static_cast<double>(scale[c]) +
                         static_cast<double>(offset[c]));
    }
    const TypedArray src = device.typed(x), dst = device.typed(x.size());
    device.ops().rescale(dst.data(), src.data(), scale.data(), offset.data(), rows, columns);
    check_close(dst.read(), expected, device.tolerance(1e-6));
    device.ops().rescale(src.data(), src.data(), scale.data(), offset.data(), rows, columns);
    CHECK(src.read() == dst.read());
  }
}

}  // namespace dtrain::test
