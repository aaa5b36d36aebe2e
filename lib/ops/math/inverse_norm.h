// Scaling of rows by the inverse of their norms: RMS normalisation and unit normalisation.
#pragma once

#include <cmath>
#include <limits>

#include "base/host_device.h"

namespace dtrain::math {

/// The factor of a row: 1 / sqrt(share * the sum of its squares + epsilon), but at most `limit`.
struct InverseNorm {
  float share = 1, epsilon = 0, limit = std::numeric_limits<float>::infinity();

  DTRAIN_HOST_DEVICE float operator()(float squares) const {
    const float inverse = 1.0f / ::sqrtf(squares * share + epsilon);
    return inverse > limit ? limit : inverse;  // NaN stays NaN
  }

  /// Returns the slope in the gradient of x, which is inverse * (the gradient of inverse * x) - slope * x.
  /// `dot` is the sum of the products of the row's elements with the gradients of inverse * x. A factor at
  /// its limit is constant, so its slope is 0.
  DTRAIN_HOST_DEVICE float slope(float inverse, float dot) const {
    // Multiplies by one factor at a time, because the cube of a large or small factor can exceed float32's
    // range.
    return inverse == limit ? 0.0f : dot * inverse * inverse * inverse * share;
  }
};

}  // namespace dtrain::math
