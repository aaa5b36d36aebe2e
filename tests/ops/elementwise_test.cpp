#include <array>
#include <limits>

#include <doctest/doctest.h>

#include "ops/fixture.h"
#include "ops/math/functions.h"

namespace dtrain::test {
namespace {

// Odd ones, one element, and one that threads share.
constexpr int64_t kSizes[] = {0, 1, 7, 16, 1025, 20011};

struct ActivationCase {
  ActivationSpec spec;
  double (*reference)(double x);
};

double gelu_by_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

const ActivationCase kActivations[] = {
    {{Activation::linear, 0, false}, [](double x) { return x; }},
    {{Activation::relu, 0, false}, [](double x) { return std::max(x, 0.0); }},
    {{Activation::leaky_relu, 0.25f, false}, [](double x) { return x < 0 ? 0.25 * x : x; }},
    {{Activation::gelu, 0, false}, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
    {{Activation::gelu, 0, true}, gelu_by_tanh},
    {{Activation::silu, 0, false}, [](double x) { return x / (1 + std::exp(-x)); }},
    {{Activation::tanh, 0, false}, [](double x) { return std::tanh(x); }},
    {{Activation::sigmoid, 0, false}, [](double x) { return 1 / (1 + std::exp(-x)); }},
    {{Activation::elu, 0.5f, false}, [](double x) { return x < 0 ? 0.5 * std::expm1(x) : x; }},
};

/// Small, middling and extreme.
Floats inputs_of(int64_t n) {
  Floats x = random_floats(n, 1, 8);
  const float special[] = {100, -100, 1e-6f, -1e-6f, 0.03f, -0.03f, 20, -20, 0.6f, -0.7f};
  for (size_t i = 0; i < x.size() && i < std::size(special); ++i) x[i] = special[i];
  return x;
}

}  // namespace

TEST_CASE("functions are within a few units in the last place") {
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

TEST_CASE("activations and their gradients") {
  on_every_cpu([](cpu::CpuOps& ops) {
    for (const ActivationCase& activation : kActivations) {
      CAPTURE(static_cast<int>(activation.spec.kind));
      for (const int64_t n : kSizes) {
        const Floats x = inputs_of(n), diff = random_floats(n, 2);
        Floats y(x.size()), dx(x.size());
        Doubles expected(x.size()), expected_diff(x.size());
        for (size_t i = 0; i < x.size(); ++i) {
          const double at = static_cast<double>(x[i]), step = 1e-7;
          expected[i] = activation.reference(at);
          expected_diff[i] = static_cast<double>(diff[i]) *
                             (activation.reference(at + step) - activation.reference(at - step)) / (2 * step);
        }
        ops.activation_forward(activation.spec, x.data(), y.data(), n);
        check_close(y, expected, 1e-6);
        const float* saved = from_output(activation.spec) ? y.data() : x.data();
        ops.activation_backward(activation.spec, saved, diff.data(), dx.data(), n);
        check_close(dx, expected_diff, 3e-6);
        Floats in_place = diff;
        ops.activation_backward(activation.spec, saved, in_place.data(), in_place.data(), n);
        CHECK(in_place == dx);
      }
    }
  });
}

TEST_CASE("NaN and infinity pass through activations") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                  kInfinity = std::numeric_limits<float>::infinity();
  on_every_cpu([&](cpu::CpuOps& ops) {
    for (const ActivationCase& activation : kActivations) {
      CAPTURE(static_cast<int>(activation.spec.kind));
      const Floats x(17, kNan), huge(17, kInfinity);
      Floats y(17);
      ops.activation_forward(activation.spec, x.data(), y.data(), 17);
      for (const float value : y) CHECK(std::isnan(value));
      ops.activation_forward(activation.spec, huge.data(), y.data(), 17);
      const bool bounded =
          activation.spec.kind == Activation::tanh || activation.spec.kind == Activation::sigmoid;
      for (const float value : y) CHECK(value == (bounded ? 1.0f : kInfinity));
    }
  });
}

TEST_CASE("sums, products and copies") {
  on_every_cpu([](cpu::CpuOps& ops) {
    for (const int64_t n : kSizes) {
      const Floats a = random_floats(n, 1), b = random_floats(n, 2), c = random_floats(n, 3);
      Doubles sum(a.size()), relu_sum(a.size()), product(a.size()), mixed(a.size());
      for (size_t i = 0; i < a.size(); ++i) {
        const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]),
                     z = static_cast<double>(c[i]);
        sum[i] = x + y + z;
        relu_sum[i] = std::max(x + y, 0.0);
        product[i] = x * y * z;
        mixed[i] = 0.5 * x - 2 * y;
      }
      const std::array three{a.data(), b.data(), c.data()};
      Floats dst(a.size(), 7);
      ops.sum(dst.data(), three, {}, n);
      check_close(dst, sum, 1e-6);
      dst = a;
      ops.sum(dst.data(), std::array<const float*, 2>{dst.data(), b.data()}, {Activation::relu, 0, false}, n);
      check_close(dst, relu_sum, 1e-6);
      ops.multiply(dst.data(), three, n);
      check_close(dst, product, 1e-6);
      dst = b;
      ops.scale_add(dst.data(), a.data(), 0.5f, -2, n);
      check_close(dst, mixed, 1e-6);
      dst.assign(dst.size(), std::numeric_limits<float>::quiet_NaN());
      ops.scale_add(dst.data(), a.data(), 1, 0, n);
      CHECK(dst == a);
      ops.fill(dst.data(), 3, n);
      CHECK(dst == Floats(dst.size(), 3));
      ops.copy(dst.data(), b.data(), n);
      CHECK(dst == b);
    }
  });
}

TEST_CASE("the gradients of several readers, summed, and the activation undone") {
  on_every_cpu([](cpu::CpuOps& ops) {
    for (const int64_t n : kSizes) {
      const Floats y = random_floats(n, 1), a = random_floats(n, 2), b = random_floats(n, 3),
                   c = random_floats(n, 4);
      Doubles expected(y.size());
      for (size_t i = 0; i < y.size(); ++i) {
        const double total =
            static_cast<double>(a[i]) + static_cast<double>(b[i]) + static_cast<double>(c[i]);
        expected[i] = y[i] > 0 ? total : 0;
      }
      Floats dst = b;
      ops.sum_backward({Activation::relu, 0, false}, y.data(),
                       std::array<const float*, 3>{a.data(), dst.data(), c.data()}, dst.data(), n);
      check_close(dst, expected, 1e-6);
    }
  });
}

TEST_CASE("dropout is decided by the sample's place and nothing else") {
  const Philox random = Philox::of(9, 3);
  const float rate = 0.3f;
  for (const int64_t per_sample : {1, 4, 6, 63, 64, 70, 3001}) {
    const int64_t samples = 5;
    const uint64_t first = 1000;
    const Floats src(static_cast<size_t>(samples * per_sample), 1);
    Floats expected(src.size());
    for (int64_t s = 0; s < samples; ++s) {
      for (int64_t e = 0; e < per_sample; ++e) {
        const uint64_t low = (first + static_cast<uint64_t>(s)) << 32 | static_cast<uint64_t>(e / 4);
        const bool kept = uniform01(random(77, low).v[e % 4]) >= rate;
        expected[static_cast<size_t>(s * per_sample + e)] = kept ? 1 / (1 - rate) : 0;
      }
    }
    on_every_cpu([&](cpu::CpuOps& ops) {
      Floats dst = src;
      ops.dropout(dst.data(), dst.data(), rate, random, 77, first, samples, per_sample);
      CHECK(dst == expected);
      // A replica that has the last two samples only.
      Floats part(static_cast<size_t>(2 * per_sample));
      ops.dropout(part.data(), src.data(), rate, random, 77, first + 3, 2, per_sample);
      CHECK(part == Floats(expected.end() - 2 * per_sample, expected.end()));
    });
  }
}

}  // namespace dtrain::test
