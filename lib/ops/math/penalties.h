// The penalties of regularizers, and the limits of constraints.
#pragma once

#include <math.h>

#include "base/host_device.h"
#include "ops/math/gradient_scale.h"
#include "ops/specs.h"

namespace dtrain::math {

DTRAIN_HOST_DEVICE inline float penalty(const PenaltySpec& spec, float x) {
  return spec.l1 * ::fabsf(x) + spec.l2 * x * x;
}

/// Returns the derivative of the penalty. As in Keras, the derivative of |x| is 0 at 0.
DTRAIN_HOST_DEVICE inline float penalty_gradient(const PenaltySpec& spec, float x) {
  const float sign = x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : 0.0f;
  return spec.l1 * sign + 2.0f * spec.l2 * x;
}

/// Returns the number by which the sum of the absolute cosines over all ordered pairs of vectors must be
/// multiplied to get the penalty.
inline float orthogonal_factor(const OrthogonalSpec& spec) {
  const auto pairs = static_cast<double>(spec.vectors) * static_cast<double>(spec.vectors - 1);
  return static_cast<float>(static_cast<double>(spec.factor) / pairs);
}

/// The dot products of two vectors a and b with each other and with themselves.
struct VectorPair {
  double product = 0, squares_a = 0, squares_b = 0;

  DTRAIN_HOST_DEVICE void add(float a, float b) {
    product += static_cast<double>(a) * static_cast<double>(b);
    squares_a += static_cast<double>(a) * static_cast<double>(a);
    squares_b += static_cast<double>(b) * static_cast<double>(b);
  }
  DTRAIN_HOST_DEVICE double inverse_a() const { return squares_a > 0 ? 1 / ::sqrt(squares_a) : 0; }
  DTRAIN_HOST_DEVICE double inverse_b() const { return squares_b > 0 ? 1 / ::sqrt(squares_b) : 0; }
  DTRAIN_HOST_DEVICE double cosine() const { return product * inverse_a() * inverse_b(); }
  DTRAIN_HOST_DEVICE double size_of_cosine() const { return ::fabs(cosine()); }
  /// The gradient of size_of_cosine() with respect to a is factor_a() * a + factor_b() * b. As in Keras, the
  /// derivative of |x| is 0 at 0.
  DTRAIN_HOST_DEVICE double factor_a() const { return -size_of_cosine() * inverse_a() * inverse_a(); }
  DTRAIN_HOST_DEVICE double factor_b() const {
    return (product > 0 ? 1 : product < 0 ? -1 : 0) * inverse_a() * inverse_b();
  }
};

/// Returns the factor by which penalty_gradient() must be multiplied before it is added to a gradient that is
/// not scaled yet. The update will multiply this gradient by mean / loss_scale (see next_gradient_scale()),
/// so the factor is the inverse. `weights` has the same meaning as in next_gradient_scale().
DTRAIN_HOST_DEVICE inline float penalty_scale(const GradientRule& rule, const double* weights,
                                              const StepState& state) {
  return static_cast<float>(state.gradient.loss_scale / mean_factor(rule, weights, state));
}

/// Returns the factor by which the elements of a column must be multiplied. `squares` is the sum of the
/// squares of the column. As in Keras, 1e-7 is added to the divisor.
DTRAIN_HOST_DEVICE inline float norm_factor(const ConstraintSpec& spec, double squares) {
  const float norm = ::sqrtf(static_cast<float>(squares));
  const float limited = norm < spec.min ? spec.min : norm > spec.max ? spec.max : norm;
  return (spec.rate * limited + (1.0f - spec.rate) * norm) / (1e-7f + norm);
}

/// Returns 0 if x is negative, and x otherwise. NaN stays NaN.
DTRAIN_HOST_DEVICE inline float without_negative(float x) {
  return x < 0.0f ? 0.0f : x;
}

}  // namespace dtrain::math
