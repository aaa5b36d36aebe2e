// Tests differences between arrays, in units in the last place.
#include "report/array_difference.h"

#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

using namespace dtrain;

TEST_CASE("units in the last place are counted across zero, denormals and powers of two") {
  constexpr float kLeast = std::numeric_limits<float>::denorm_min();
  CHECK(ulps_between(0.0f, -0.0f) == 0);
  CHECK(ulps_between(0.0f, kLeast) == 1);
  CHECK(ulps_between(-kLeast, kLeast) == 2);
  CHECK(ulps_between(1.0f, std::nextafter(1.0f, 2.0f)) == 1);
  CHECK(ulps_between(1.0f, std::nextafter(1.0f, 0.0f)) == 1);
  CHECK(ulps_between(std::numeric_limits<float>::max(), std::numeric_limits<float>::infinity()) == 1);
  CHECK(ulps_between(-1.0f, 1.0f) == 2 * ulps_between(0.0f, 1.0f));
}

TEST_CASE("arrays are compared element by element") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const float next = std::nextafter(1.0f, 2.0f);
  const std::vector<float> a{1, next, 0.0f, kNan, kNan, 2, -3};
  const std::vector<float> b{1, 1, -0.0f, kNan, 5, 4, -3};
  const ArrayDifference found = compare_arrays(a, b, 0);
  CHECK(found.elements == 7);
  CHECK(found.different == 3);
  CHECK(found.distances == std::array<int64_t, 6>{1, 0, 0, 0, 1, 1});
  CHECK(std::isinf(found.largest));

  const ArrayDifference close = compare_arrays(a, b, 1e-6);
  CHECK(close.different == 2);
  CHECK(close.distances == std::array<int64_t, 6>{0, 0, 0, 0, 1, 1});

  const ArrayDifference numbers = compare_arrays(std::vector<float>{2, 8}, std::vector<float>{4, 7}, 0);
  CHECK(numbers.largest == 2);
  CHECK(numbers.relative == 0.5);
  CHECK(compare_arrays(std::vector<float>{2, 8}, std::vector<float>{4, 7}, 0.5).different == 0);
  CHECK(std::isinf(compare_arrays(std::vector<float>{1}, std::vector<float>{0}, 0).relative));
}

TEST_CASE("a single different element is found") {
  std::vector<float> a(100'000, 0.5f), b = a;
  b[77'777] = 0.25f;
  const ArrayDifference found = compare_arrays(a, b, 0);
  CHECK(found.different == 1);
  CHECK(found.largest == 0.25);
  CHECK(found.relative == 1);
}
