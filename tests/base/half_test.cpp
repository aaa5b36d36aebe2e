// 16-bit floating point numbers.
#include "base/half.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

using namespace dtrain;

TEST_CASE("every float16 is unchanged after conversion to float32 and back") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = from_float16(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    REQUIRE(to_float16(value) == bits);
  }
}

TEST_CASE("float16 rounds to nearest, ties to even") {
  CHECK(to_float16(1.0f) == 0x3c00);
  CHECK(to_float16(-2.0f) == 0xc000);
  CHECK(to_float16(1.0f + 0x1p-11f) == 0x3c00);             // halfway: the even neighbor is below
  CHECK(to_float16(1.0f + 3 * 0x1p-11f) == 0x3c02);         // halfway: the even neighbor is above
  CHECK(to_float16(1.0f + 0x1p-11f + 0x1p-20f) == 0x3c01);  // more than halfway
  CHECK(to_float16(0x1p-24f) == 0x0001);
  CHECK(to_float16(0x1p-25f) == 0x0000);  // halfway to the smallest number
  CHECK(to_float16(0x1.8p-25f) == 0x0001);
  CHECK(to_float16(kMostFloat16) == 0x7bff);
  CHECK(to_float16(65519.0f) == 0x7bff);
  CHECK(to_float16(65520.0f) == 0x7c00);
  CHECK(to_float16(-std::numeric_limits<float>::infinity()) == 0xfc00);
  CHECK(std::isnan(from_float16(to_float16(std::nanf("")))));
}

TEST_CASE("bfloat16 is the upper half of float32") {
  CHECK(from_bfloat16(0x3f80) == 1.0f);
  CHECK(from_bfloat16(0xc049) == -3.140625f);
}
