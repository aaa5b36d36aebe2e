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

/// Returns the derivative of the penalty. As in Keras, that of |x| is 0 at 0.
DTRAIN_HOST_DEVICE inline float penalty_gradient(const PenaltySpec& spec, float x) {
  const float sign = x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : 0.0f;
  return spec.l1 * sign + 2.0f * spec.l2 * x;
}

/// Returns the factor of penalty_gradient() in a gradient that the update will multiply by mean / loss_scale
/// (next_gradient_scale). `weights`: see there.
DTRAIN_HOST_DEVICE inline float penalty_scale(const GradientRule& rule, const double* weights,
                                              const StepState& state) {
  return static_cast<float>(state.gradient.loss_scale / mean_factor(rule, weights, state));
}

/// Returns the factor of elements whose squares have this sum. As in Keras, 1e-7 is added to the divisor.
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
