// Conversions of 16-bit floating-point numbers, as stored in files and used by GPUs.
#pragma once

#include <bit>
#include <cstdint>

namespace dtrain {

/// Largest finite float16.
inline constexpr float kMostFloat16 = 65504;

/// Returns the bits of the nearest float16 (ties to even). Numbers beyond its range become infinite.
inline uint16_t to_float16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const uint32_t size = bits & 0x7fffffffU;
  if (size > 0x7f800000U) return static_cast<uint16_t>(sign | 0x7e00U);   // NaN
  if (size >= 0x477ff000U) return static_cast<uint16_t>(sign | 0x7c00U);  // 65520 rounds to infinity
  // Below 2^-14, float16 numbers are multiples of 2^-24. This is also the spacing of the float32 numbers from
  // 0.5 to 1, so adding 0.5 rounds the number to a multiple of 2^-24. The difference between the bits of the
  // sum and the bits of 0.5 is the mantissa of the float16 number.
  if (size < 0x38800000U) {
    const float rounded = std::bit_cast<float>(size) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - std::bit_cast<uint32_t>(0.5f)));
  }
  const uint32_t odd = (size >> 13) & 1U;
  return static_cast<uint16_t>(sign | ((size + 0xfffU + odd - (112U << 23)) >> 13));
}

inline float from_float16(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000U) << 16, exponent = (bits >> 10) & 0x1fU, mantissa = bits & 0x3ffU;
  if (exponent == 0x1fU) return std::bit_cast<float>(sign | 0x7f800000U | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112U) << 23 | mantissa << 13);
  const float size = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -size : size;
}

/// Converts a bfloat16 number to float32. Its bits are the upper half of the float32 number.
inline float from_bfloat16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

}  // namespace dtrain
