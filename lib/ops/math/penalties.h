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

/// Returns the factor of the sum of the absolute cosines over all ordered pairs.
inline float orthogonal_factor(const OrthogonalSpec& spec) {
  const auto pairs = static_cast<double>(spec.vectors) * static_cast<double>(spec.vectors - 1);
  return static_cast<float>(static_cast<double>(spec.factor) / pairs);
}

/// The products of two vectors with each other and with themselves.
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
  /// Returns the factors of a and b in the gradient of size_of_cosine() with respect to a. As in Keras, the
  /// derivative of |x| is 0 at 0.
  DTRAIN_HOST_DEVICE double factor_a() const { return -size_of_cosine() * inverse_a() * inverse_a(); }
  DTRAIN_HOST_DEVICE double factor_b() const {
    return (product > 0 ? 1 : product < 0 ? -1 : 0) * inverse_a() * inverse_b();
  }
};

/// Returns the factor of penalty_gradient() in a gradient that the update will multiply by mean / loss_scale
/// (next_gradient_scale). `weights` is the same as in next_gradient_scale().
DTRAIN_HOST_DEVICE inline float penalty_scale(const GradientRule& rule, const double* weights,
                                              const StepState& state) {
  return static_cast<float>(state.gradient.loss_scale / mean_factor(rule, weights, state));
}

/// Returns the factor for elements whose sum of squares is `squares`. As in Keras, 1e-7 is added to the
/// divisor.
DTRAIN_HOST_DEVICE inline float norm_factor(const ConstraintSpec& spec, double squares) {
  const float norm = ::sqrtf(static_cast<float>(squares));
  const float limited = norm < spec.min ? spec.min : norm > spec.max ? spec.max : norm;
  return (spec.rate * limited + (1.0f - spec.rate) * norm) / (1e-7f + norm);
}

/// Returns 0 for a negative number. NaN stays NaN.
DTRAIN_HOST_DEVICE inline float without_negative(float x) {
  return x < 0.0f ? 0.0f : x;
}

}  // namespace dtrain::math
