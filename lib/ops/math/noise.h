// Normally distributed noise from random words.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/host_device.h"
#include "ops/math/functions.h"
#include "ops/specs.h"

namespace dtrain::math {

/// Two numbers, as returned by normals().
struct Normals {
  float first, second;
};

/// Returns two independent standard normal numbers, computed from two random words by the Box-Muller
/// transform. Their absolute values are at most 6.8.
DTRAIN_HOST_DEVICE inline Normals normals(uint32_t a, uint32_t b) {
  // Half a step is added so that `uniform` is never 0, because the logarithm of 0 is infinite.
  const float uniform = static_cast<float>(a) * 0x1p-32f + 0x1p-33f;
  const float radius = ::sqrtf(-2.0f * log(uniform));
  // The angle is `quarter` quarter turns plus x, with |x| <= pi / 4.
  const uint32_t quarter = (b + 0x20000000u) >> 30;
  const float x = static_cast<float>(static_cast<int32_t>(b - (quarter << 30))) * 0x1.921fb6p-30f;
  const float z = x * x;
  // The first terms of the Taylor series. The next terms are below 3e-8.
  const float sine =
      x * (1.0f + z * (-1.0f / 6 + z * (1.0f / 120 + z * (-1.0f / 5040 + z * (1.0f / 362880)))));
  const float cosine = 1.0f + z * (-1.0f / 2 + z * (1.0f / 24 + z * (-1.0f / 720 + z * (1.0f / 40320))));
  const bool is_odd = (quarter & 1u) != 0;
  const float horizontal = is_odd ? sine : cosine, vertical = is_odd ? cosine : sine;
  // The cosine is negative in the quarter turns 1 and 2, and the sine in 2 and 3.
  return {radius * (((quarter + 1u) & 2u) != 0 ? -horizontal : horizontal),
          radius * ((quarter & 2u) != 0 ? -vertical : vertical)};
}

/// Returns x with noise, added or multiplied as the spec says. `normal` is a standard normal number.
DTRAIN_HOST_DEVICE inline float with_noise(const NoiseSpec& noise, float x, float normal) {
  return noise.multiplies ? x * (1.0f + noise.deviation * normal) : x + noise.deviation * normal;
}

}  // namespace dtrain::math
