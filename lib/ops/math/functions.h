// Transcendental functions for elementwise operations, in float32. On the CPU, they consist of arithmetic
// without branches, so compilers can vectorize them. On a GPU, they call CUDA's functions.
#pragma once

#include <bit>
#include <cstdint>
#include <math.h>
#include <string.h>

#include "base/host_device.h"

namespace dtrain::math {

/// Returns the bits of a float. For positive floats, the bits have the same order as the numbers.
DTRAIN_HOST_DEVICE inline uint32_t bits_of(float x) {
  uint32_t bits = 0;
  memcpy(&bits, &x, sizeof(bits));  // std::bit_cast cannot be used, because it is a host function
  return bits;
}

#if defined(__CUDACC__)

DTRAIN_HOST_DEVICE inline float exp(float x) {
  return ::expf(x);
}
DTRAIN_HOST_DEVICE inline float log(float x) {
  return ::logf(x);
}
DTRAIN_HOST_DEVICE inline float tanh(float x) {
  return ::tanhf(x);
}
DTRAIN_HOST_DEVICE inline float erf(float x) {
  return ::erff(x);
}
DTRAIN_HOST_DEVICE inline float log1p(float x) {
  return ::log1pf(x);
}

#else

// The coefficients of each polynomial were fitted for this file by least squares at Chebyshev nodes. The
// nodes were reweighted to minimize the largest error, which is well under half a unit in the last place. All
// functions return NaN for NaN.

/// Returns e^x with an error of at most 2 units in the last place. The result is infinity from 88.73 on, and
/// 0 below -104. x is split into n log 2 + r with |r| <= log(2) / 2, after W. Cody and W. Waite, "Software
/// Manual for the Elementary Functions", 1980.
DTRAIN_HOST_DEVICE inline float exp(float x) {
  // For NaN, both comparisons are false, so NaN is kept.
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  // Adding this number to x rounds x to an integer, which is then in the low bits of the sum.
  constexpr float kRound = 0x1.8p23f;
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  float r = x - n * 0x1.62ep-1f;  // n times the leading bits of log 2; this product is exact
  r = r - n * 0x1.0bfbe8p-15f;    // n times the remaining bits of log 2
  float p = 0.000199185073f;
  p = p * r + 0.00139461772f;
  p = p * r + 0.00833326392f;
  p = p * r + 0.0416662693f;
  p = p * r + 0.166666672f;
  p = p * r + 0.5f;
  p = p * r * r + r + 1.0f;
  // Multiplies by 2^n in two steps, because 2^n itself may exceed the range of float32. The integers are
  // unsigned, because their bits are arbitrary if x is NaN, and an overflow of signed integers would be
  // undefined.
  const uint32_t exponent = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound);
  const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(exponent) >> 1);
  return p * std::bit_cast<float>((half + 127u) << 23) * std::bit_cast<float>((exponent - half + 127u) << 23);
}

/// Returns log(x). For normal numbers, the error is at most 2 units in the last place. The result is
/// -infinity for 0 and for denormal numbers, and NaN for x < 0. x is split into 2^n (1 + f) with sqrt(1/2) <=
/// 1 + f < sqrt(2).
DTRAIN_HOST_DEVICE inline float log(float x) {
  constexpr uint32_t kHalf = 0x3f3504f3u;  // sqrt(1/2)
  const uint32_t shifted = std::bit_cast<uint32_t>(x) - kHalf;
  const float n = static_cast<float>(static_cast<int32_t>(shifted) >> 23);
  const float f = std::bit_cast<float>((shifted & 0x007fffffu) + kHalf) - 1.0f;
  float p = 0.0691541433f;
  p = p * f - 0.117898308f;
  p = p * f + 0.118729681f;
  p = p * f - 0.123843439f;
  p = p * f + 0.142186582f;
  p = p * f - 0.16669251f;
  p = p * f + 0.200022265f;
  p = p * f - 0.249999866f;
  p = p * f + 0.333333105f;
  const float square = f * f;
  float result = p * square * f + n * 0x1.0bfbe8p-15f;
  result = result - 0.5f * square + f + n * 0x1.62ep-1f;
  const float infinity = std::bit_cast<float>(0x7f800000u);
  result = x < 0x1p-126f ? -infinity : result;
  result = x < 0.0f ? infinity - infinity : result;
  return x < infinity ? result : x;  // infinity and NaN
}

/// Returns log(1 + x) for x >= 0. The result is accurate for small x, because the rounding error of 1 + x is
/// corrected (W. Kahan's method).
DTRAIN_HOST_DEVICE inline float log1p(float x) {
  const float sum = 1.0f + x;
  return log(sum) + (x - (sum - 1.0f)) / sum;
}

/// Returns tanh(x) within 3 units in the last place.
DTRAIN_HOST_DEVICE inline float tanh(float x) {
  const float a = ::fabsf(x);
  const float z = x * x;
  float p = 0.00214753905f;
  p = p * z - 0.00818267651f;
  p = p * z + 0.0217029676f;
  p = p * z - 0.0539472029f;
  p = p * z + 0.133332103f;
  p = p * z - 0.333333313f;
  const float small = p * z * x + x;
  const float large = ::copysignf(1.0f - 2.0f / (exp(2.0f * a) + 1.0f), x);
  return a < 0.625f ? small : large;
}

/// Returns erf(x) with an error of at most 2 units in the last place. For |x| >= 1, computes 1 - exp(q),
/// where the polynomial q approximates log erfc.
DTRAIN_HOST_DEVICE inline float erf(float x) {
  float a = ::fabsf(x);
  const float z = x * x;
  float p = 7.88912221e-05f;
  p = p * z - 0.000802084222f;
  p = p * z + 0.00518953521f;
  p = p * z - 0.0268544443f;
  p = p * z + 0.112836003f;
  p = p * z - 0.37612626f;
  p = p * z + 1.12837911f;
  const float small = p * x;
  a = a > 4.0f ? 4.0f : a;  // for larger numbers, the result rounds to 1
  float q = 2.51296854e-07f;
  q = q * a - 2.53143917e-05f;
  q = q * a + 0.000463785516f;
  q = q * a - 0.0042823744f;
  q = q * a + 0.025373539f;
  q = q * a - 0.108638972f;
  q = q * a - 0.633039653f;
  q = q * a - 1.1296612f;
  q = q * a + 0.000204358366f;
  return a < 1.0f ? small : ::copysignf(1.0f - exp(q), x);
}

#endif

DTRAIN_HOST_DEVICE inline float sigmoid(float x) {
  return 1.0f / (1.0f + exp(-x));
}

}  // namespace dtrain::math
