#include "nn/initializer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "support/kinds.h"

namespace dtrain::test {
namespace {

std::vector<float> drawn(const std::string& yaml, const Shape& shape, uint64_t seed = 1) {
  std::vector<float> values(static_cast<size_t>(shape.elements()), NAN);
  parse_kind<Initializer>(yaml)->fill(values.data(), shape, Philox::of(seed, 2));
  return values;
}

struct Statistics {
  double mean = 0, deviation = 0, low = INFINITY, high = -INFINITY, kurtosis = 0;
};

Statistics statistics_of(const std::vector<float>& values) {
  Statistics s;
  const auto n = static_cast<double>(values.size());
  double fourth = 0;
  for (const double v : values) {
    s.mean += v / n;
    s.low = std::min(s.low, v);
    s.high = std::max(s.high, v);
  }
  for (const double v : values) {
    s.deviation += std::pow(v - s.mean, 2) / n;
    fourth += std::pow(v - s.mean, 4) / n;
  }
  s.kurtosis = fourth / (s.deviation * s.deviation);
  s.deviation = std::sqrt(s.deviation);
  return s;
}

const Shape kKernel{300, 200};  // fan_in 300, fan_out 200

void check_uniform(const std::string& yaml, double limit) {
  INFO(yaml);
  const Statistics s = statistics_of(drawn(yaml, kKernel));
  CHECK(std::abs(s.mean) < 0.01 * limit);
  CHECK(s.deviation == doctest::Approx(limit / std::sqrt(3)).epsilon(0.01));
  CHECK(s.high <= limit);
  CHECK(s.high > 0.999 * limit);
  CHECK(s.low >= -limit);
  CHECK(s.low < -0.999 * limit);
}

/// Checks that the drawn numbers have the standard deviation `deviation` and magnitudes of at most `limit`.
void check_truncated(const std::string& yaml, double deviation, double limit) {
  INFO(yaml);
  const Statistics s = statistics_of(drawn(yaml, kKernel));
  CHECK(std::abs(s.mean) < 0.02 * deviation);
  CHECK(s.deviation == doctest::Approx(deviation).epsilon(0.01));
  CHECK(s.high < limit);
  CHECK(s.high > 0.99 * limit);
  CHECK(s.low > -limit);
}

}  // namespace

TEST_CASE("constant initializers fill with their value") {
  CHECK(drawn("zeros", {3}) == std::vector<float>{0, 0, 0});
  CHECK(drawn("ones", {2}) == std::vector<float>{1, 1});
  CHECK(drawn("constant: {value: -2.5}", {2}) == std::vector<float>{-2.5, -2.5});
  CHECK(drawn("constant: 3", {1}) == std::vector<float>{3});
  CHECK(drawn("constant", {1}) == std::vector<float>{0});
}

TEST_CASE("random initializers have Keras's distributions") {
  check_uniform("random_uniform", 0.05);
  const Statistics shifted = statistics_of(drawn("random_uniform: {minval: 2, maxval: 3}", kKernel));
  CHECK(shifted.mean == doctest::Approx(2.5).epsilon(0.01));
  CHECK(shifted.low >= 2);
  const Statistics normal = statistics_of(drawn("random_normal: {mean: 1, stddev: 2}", kKernel));
  CHECK(normal.mean == doctest::Approx(1).epsilon(0.03));
  CHECK(normal.deviation == doctest::Approx(2).epsilon(0.01));
  CHECK(normal.kurtosis == doctest::Approx(3).epsilon(0.03));
  CHECK(normal.high > 1 + 2 * 3.5);
  // As in Keras, the truncation makes the standard deviation smaller, and this is not corrected.
  check_truncated("truncated_normal", 0.05 * 0.87962566103423978, 0.1);
}

TEST_CASE("variance scaling and its aliases have the same distribution") {
  check_uniform("glorot_uniform", std::sqrt(6.0 / 500));
  check_uniform("he_uniform", std::sqrt(6.0 / 300));
  check_uniform("lecun_uniform", std::sqrt(3.0 / 300));
  const double cut = 2 / 0.87962566103423978;
  for (const auto& [name, variance] :
       {std::pair{"glorot_normal", 2.0 / 500}, std::pair{"he_normal", 2.0 / 300},
        std::pair{"lecun_normal", 1.0 / 300}, std::pair{"variance_scaling", 1.0 / 300}})
    check_truncated(name, std::sqrt(variance), cut * std::sqrt(variance));
  check_uniform("variance_scaling: {scale: 3, mode: fan_out, distribution: uniform}", std::sqrt(9.0 / 200));
  const Statistics s =
      statistics_of(drawn("variance_scaling: {mode: fan_avg, distribution: untruncated_normal}", kKernel));
  CHECK(s.deviation == doctest::Approx(std::sqrt(1.0 / 250)).epsilon(0.01));
  CHECK(s.kurtosis == doctest::Approx(3).epsilon(0.03));
}

TEST_CASE("orthogonal matrices have orthonormal rows or columns") {
  for (const Shape& shape :
       {Shape{7, 7}, Shape{40, 5}, Shape{5, 40}, Shape{3, 2, 4}, Shape{1, 1}, Shape{6}}) {
    INFO(shape.str());
    const std::vector<float> values = drawn("orthogonal: {gain: 2}", shape);
    const auto across = static_cast<size_t>(shape.back()), down = values.size() / across;
    const size_t count = std::min(across, down), length = std::max(across, down);
    const auto element = [&](size_t vector, size_t i) {
      return static_cast<double>(down >= across ? values[i * across + vector] : values[vector * across + i]);
    };
    for (size_t a = 0; a < count; ++a)
      for (size_t b = 0; b <= a; ++b) {
        double product = 0;
        for (size_t i = 0; i < length; ++i) product += element(a, i) * element(b, i);
        CHECK(std::abs(product - (a == b ? 4 : 0)) < 1e-5);
      }
  }
  CHECK(drawn("orthogonal", {4, 3}) == drawn("orthogonal", {4, 3}));
  CHECK(drawn("orthogonal", {4, 3}) != drawn("orthogonal", {4, 3}, 2));
  // A random rotation has positive and negative elements in equal numbers. A QR decomposition without a
  // correction of signs would not.
  const std::vector<float> signs = drawn("orthogonal", {1000, 1});
  CHECK(std::abs(std::count_if(signs.begin(), signs.end(), [](float v) { return v > 0; }) - 500) < 100);
}

TEST_CASE("fan-in and fan-out include the receptive field") {
  const auto check = [](const Shape& shape, double in, double out) {
    INFO(shape.str());
    CHECK(fans_of(shape).in == in);
    CHECK(fans_of(shape).out == out);
  };
  check({}, 1, 1);
  check({7}, 7, 7);
  check({4, 5}, 4, 5);
  check({3, 2, 4, 5}, 24, 30);
}

TEST_CASE("an element depends only on the random source and its index") {
  for (const char* yaml : {"random_uniform", "random_normal", "truncated_normal", "lecun_normal"}) {
    INFO(yaml);
    CHECK(drawn(yaml, {4, 3}) == drawn(yaml, {4, 3}));
    CHECK(drawn(yaml, {4, 3}) != drawn(yaml, {4, 3}, 2));
    const auto some = drawn("random_normal", {7}), more = drawn("random_normal", {50});
    CHECK(std::equal(some.begin(), some.end(), more.begin()));
    auto distinct = drawn(yaml, {1000});
    std::sort(distinct.begin(), distinct.end());
    CHECK(std::unique(distinct.begin(), distinct.end()) == distinct.end());
  }
}

}  // namespace dtrain::test
