// Reference implementation of the compute types on the host: rounding and memory representation. It does not
// use the types of CUDA's headers, which it verifies.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "ops/specs.h"

namespace dtrain::test {

/// A binary number format whose numbers float32 represents exactly.
struct Format {
  int bits;            // bits of the significand, including the implicit one
  int least_exponent;  // smallest exponent of normal numbers
  float greatest;      // greatest finite number
};

/// Returns the format of a floating-point type.
constexpr Format format_of(DType type) {
  switch (type) {
    case DType::bfloat16:
      return {8, -126, 0x1.fep127f};
    case DType::float16:
      return {11, -14, 65504.0f};
    default:
      break;
  }
  return {24, -126, std::numeric_limits<float>::max()};
}

constexpr Format kTf32{11, -126, 0x1.ffcp127f};

/// Rounds to the nearest number of the format, ties to even.
inline float rounded(float x, const Format& format) {
  if (!std::isfinite(x) || x == 0) return x;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(x), format.least_exponent) - format.bits + 1);
  const double nearest = std::nearbyint(static_cast<double>(x) / unit) * unit;
  const bool fits = std::abs(nearest) <= static_cast<double>(format.greatest);
  return fits ? static_cast<float>(nearest) : std::copysign(std::numeric_limits<float>::infinity(), x);
}

/// Returns the bits of a float16 number.
inline uint16_t float16_bits(float x) {
  const uint32_t sign = std::signbit(x) ? 0x8000u : 0;
  if (std::isnan(x)) return static_cast<uint16_t>(sign | 0x7e00u);
  if (std::isinf(x)) return static_cast<uint16_t>(sign | 0x7c00u);
  const float size = std::abs(x);
  if (size < 0x1p-14f) return static_cast<uint16_t>(sign | static_cast<uint32_t>(size * 0x1p24f));
  const int exponent = std::ilogb(size);
  const auto fraction = static_cast<uint32_t>(std::ldexp(size, 10 - exponent)) - 0x400u;
  return static_cast<uint16_t>(sign | static_cast<uint32_t>(exponent + 15) << 10 | fraction);
}

inline float float_of_float16(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  float size =
      std::ldexp(static_cast<float>(fraction + (exponent > 0 ? 0x400 : 0)), std::max(exponent, 1) - 25);
  if (exponent == 31) size = fraction ? NAN : std::numeric_limits<float>::infinity();
  return bits & 0x8000 ? -size : size;
}

/// Returns the values as stored in arrays of this type.
inline std::vector<std::byte> bytes_of_values(const std::vector<float>& values, DType type) {
  std::vector<std::byte> bytes(values.size() * dtrain::bytes_of(type));
  for (size_t i = 0; i < values.size(); ++i) {
    const float value = rounded(values[i], format_of(type));
    const uint32_t wide = std::bit_cast<uint32_t>(value);
    const uint16_t narrow = type == DType::float16 ? float16_bits(value) : static_cast<uint16_t>(wide >> 16);
    if (type == DType::float32) {
      std::memcpy(bytes.data() + 4 * i, &wide, 4);
    } else {
      std::memcpy(bytes.data() + 2 * i, &narrow, 2);
    }
  }
  return bytes;
}

inline std::vector<float> values_of_bytes(const std::vector<std::byte>& bytes, DType type) {
  std::vector<float> values(bytes.size() / dtrain::bytes_of(type));
  for (size_t i = 0; i < values.size(); ++i) {
    if (type == DType::float32) {
      std::memcpy(&values[i], bytes.data() + 4 * i, 4);
      continue;
    }
    uint16_t narrow = 0;
    std::memcpy(&narrow, bytes.data() + 2 * i, 2);
    values[i] = type == DType::float16 ? float_of_float16(narrow)
                                       : std::bit_cast<float>(static_cast<uint32_t>(narrow) << 16);
  }
  return values;
}

}  // namespace dtrain::test
