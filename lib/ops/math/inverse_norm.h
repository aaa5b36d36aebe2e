// Scaling of rows by the inverse of their norms: RMS normalization and unit normalization.
#pragma once

#include <cmath>
#include <limits>

#include "base/host_device.h"

namespace dtrain::math {

/// Computes the factor of a row: 1 / sqrt(share * the sum of the squares of the row + epsilon), limited to
/// `limit`.
struct InverseNorm {
  float share = 1, epsilon = 0, limit = std::numeric_limits<float>::infinity();

  DTRAIN_HOST_DEVICE float operator()(float squares) const {
    const float inverse = 1.0f / ::sqrtf(squares * share + epsilon);
    return inverse > limit ? limit : inverse;  // NaN stays NaN
  }

  /// The gradient of x is inverse * (the gradient of y) - slope * x, where y = inverse * x. Returns this
  /// slope. `dot` is the dot product of x and the gradient of y. If the factor `inverse` was limited, it does
  /// not depend on x, so the slope is 0.
  DTRAIN_HOST_DEVICE float slope(float inverse, float dot) const {
    // Multiplies by one factor at a time, because inverse^3 can exceed the range of float32 if `inverse` is
    // very large or very small.
    return inverse == limit ? 0.0f : dot * inverse * inverse * inverse * share;
  }
};

}  // namespace dtrain::math
