// The scale of a gradient: clipping by norm, and loss scaling for float16.
#pragma once

#include <cmath>

#include "base/host_device.h"
#include "ops/specs.h"

namespace dtrain::math {

/// Returns the gradient scale of this step and the loss scale of the next step. `squares` is the sum of the
/// squares of the computed gradient, which is loss_scale times the true gradient. If rows have weights,
/// `mean` is the result of mean_factor(). Loss scaling follows P. Micikevicius et al., "Mixed precision
/// training", ICLR 2018, section 3.2, with Keras's constants.
DTRAIN_HOST_DEVICE inline GradientScale next_gradient_scale(const GradientRule& rule, double squares,
                                                            double mean, GradientScale scale) {
  scale.skip = 0;
  if (rule.dynamic_scaling && !(squares < 1.7976931348623157e308)) {  // the sum is infinite or NaN
    scale.skip = 1;
    scale.good_steps = 0;
    scale.loss_scale = scale.loss_scale > 1.0f ? 0.5f * scale.loss_scale : 1.0f;
    return scale;
  }
  const double norm = mean * std::sqrt(squares) / scale.loss_scale;
  double factor = mean / scale.loss_scale;
  if (rule.clip_norm > 0.0f && norm > rule.clip_norm) factor *= rule.clip_norm / norm;
  scale.gradient_scale = static_cast<float>(factor);
  if (rule.dynamic_scaling && ++scale.good_steps >= GradientRule::kGrowthSteps) {
    scale.good_steps = 0;
    // The new loss scale is used from the next step on. The gradient of this step was computed with the old
    // one.
    scale.loss_scale *= 2.0f;
  }
  return scale;
}

/// Returns the factor that converts the gradient of the mean loss over the rows to the gradient of the mean
/// that is weighted by row weights. `weights` is the sum of the weights; it may be null if the rule does not
/// use weights. If all weights are 0, the gradient of the losses is 0. The factor is then 1, so that the
/// gradient of the penalties is kept.
DTRAIN_HOST_DEVICE inline double mean_factor(const GradientRule& rule, const double* weights,
                                             const StepState& state) {
  if (!rule.is_weighted) return 1.0;
  return *weights > 0.0 ? state.now.row_weights / *weights : 1.0;
}

/// Returns the gradient scale. `squares` points to the sum of the squares of the gradient, and `weights`
/// points to the sum of the row weights. Each of the two pointers may be null if the rule does not need its
/// sum. If `weights` is null and rule.skips_unweighted is true, state.now.row_weights is used as the sum of
/// the weights.
DTRAIN_HOST_DEVICE inline GradientScale next_gradient_scale(const GradientRule& rule, const double* squares,
                                                            const double* weights, const StepState& state) {
  if (rule.skips_unweighted && !((weights ? *weights : state.now.row_weights) > 0.0)) {
    GradientScale unchanged = state.gradient;
    unchanged.gradient_scale = 0.0f;
    unchanged.skip = 1;
    return unchanged;
  }
  return next_gradient_scale(rule, squares ? *squares : 0.0, mean_factor(rule, weights, state),
                             state.gradient);
}

}  // namespace dtrain::math
