// Elementwise losses and metrics, as in Keras. value(p, t) returns the loss for prediction p and target t,
// and gradient(p, t) returns its derivative with respect to p.
#pragma once

#include "base/host_device.h"
#include "ops/math/functions.h"
#include "ops/specs.h"

namespace dtrain::math {

/// Clips a probability to Keras's bounds before its logarithm is taken. NaN stays NaN.
DTRAIN_HOST_DEVICE inline float clip_probability(float p) {
  constexpr float kLeast = 1e-7f, kMost = 1.0f - 1e-7f;
  p = p < kLeast ? kLeast : p;
  return p > kMost ? kMost : p;
}

/// Returns x^y for x in [0, 1]. If x is below 1e-7, 1e-7 is used instead, so that y may be negative.
DTRAIN_HOST_DEVICE inline float power(float x, float y) {
  return exp(y * log(x < 1e-7f ? 1e-7f : x));
}

/// -t log(p) for a probability p. The gradient is 0 if p was clipped.
struct NegativeLogLikelihood {
  DTRAIN_HOST_DEVICE float value(float p, float t) const {
    return t == 0.0f ? p * 0.0f : -t * log(clip_probability(p));
  }
  DTRAIN_HOST_DEVICE float gradient(float p, float t) const {
    return clip_probability(p) == p ? -t / p : p * 0.0f;
  }
};

/// -(t log(p) + (1 - t) log(1 - p)) for a probability p. The gradient is 0 if p was clipped.
struct BinaryCrossEntropy {
  DTRAIN_HOST_DEVICE float value(float p, float t) const {
    const float q = clip_probability(p);
    return -(t * log(q) + (1.0f - t) * log(1.0f - q));
  }
  DTRAIN_HOST_DEVICE float gradient(float p, float t) const {
    return clip_probability(p) == p ? (p - t) / (p * (1.0f - p)) : p * 0.0f;
  }
};

/// The binary cross-entropy of sigmoid(x) for a logit x. It is computed as max(x, 0) - x t + log(1 +
/// exp(-|x|)), which never overflows.
struct BinaryCrossEntropyLogits {
  DTRAIN_HOST_DEVICE float value(float x, float t) const {
    return (x < 0.0f ? 0.0f : x) - x * t + log1p(exp(-::fabsf(x)));
  }
  DTRAIN_HOST_DEVICE float gradient(float x, float t) const { return sigmoid(x) - t; }
};

/// (p - t)^2.
struct SquaredError {
  DTRAIN_HOST_DEVICE float value(float p, float t) const { return (p - t) * (p - t); }
  DTRAIN_HOST_DEVICE float gradient(float p, float t) const { return 2.0f * (p - t); }
};

/// |p - t|. The gradient is 0 if p = t.
struct AbsoluteError {
  DTRAIN_HOST_DEVICE float value(float p, float t) const { return ::fabsf(p - t); }
  DTRAIN_HOST_DEVICE float gradient(float p, float t) const {
    const float e = p - t;
    return e > 0.0f ? 1.0f : (e < 0.0f ? -1.0f : e);  // returns e itself if e is 0 or NaN
  }
};

/// (p - t)^2 / 2 if |p - t| <= delta, else delta |p - t| - delta^2 / 2.
struct Huber {
  float delta;
  DTRAIN_HOST_DEVICE float value(float p, float t) const {
    const float a = ::fabsf(p - t);
    return a > delta ? delta * a - 0.5f * delta * delta : 0.5f * a * a;
  }
  DTRAIN_HOST_DEVICE float gradient(float p, float t) const {
    const float e = p - t;
    const float least = e < -delta ? -delta : e;
    return least > delta ? delta : least;
  }
};

/// 100 |p - t| / max(|t|, 1e-7).
struct AbsolutePercentageError {
  DTRAIN_HOST_DEVICE float scale(float t) const {
    const float a = ::fabsf(t);
    return 100.0f / (a < 1e-7f ? 1e-7f : a);
  }
  DTRAIN_HOST_DEVICE float value(float p, float t) const { return scale(t) * ::fabsf(p - t); }
  DTRAIN_HOST_DEVICE float gradient(float p, float t) const {
    return scale(t) * AbsoluteError{}.gradient(p, t);
  }
};

/// (log(1 + p) - log(1 + t))^2, for p and t >= 0. If p or t is smaller than 1e-7, 1e-7 is used instead.
struct SquaredLogarithmicError {
  DTRAIN_HOST_DEVICE static float logarithm(float x) { return log1p(x < 1e-7f ? 1e-7f : x); }
  DTRAIN_HOST_DEVICE float value(float p, float t) const {
    const float e = logarithm(p) - logarithm(t);
    return e * e;
  }
  DTRAIN_HOST_DEVICE float gradient(float p, float t) const {
    return p < 1e-7f ? 0.0f : 2.0f * (logarithm(p) - logarithm(t)) / (1.0f + p);
  }
};

/// max(1 - t p, 0). Targets are -1 and 1, or 0 and 1; a target of 0 is converted to -1.
struct Hinge {
  DTRAIN_HOST_DEVICE static float sign(float t) { return t == 0.0f ? -1.0f : t; }
  DTRAIN_HOST_DEVICE static float margin(float p, float t) {
    const float m = 1.0f - sign(t) * p;
    return m <= 0.0f ? 0.0f : m;
  }
  DTRAIN_HOST_DEVICE float value(float p, float t) const { return margin(p, t); }
  DTRAIN_HOST_DEVICE float gradient(float p, float t) const {
    const float m = margin(p, t);
    return m == 0.0f ? 0.0f : m * 0.0f - sign(t);  // keeps NaN
  }
};

/// max(1 - t p, 0)^2, with the targets of Hinge.
struct SquaredHinge {
  DTRAIN_HOST_DEVICE float value(float p, float t) const {
    const float m = Hinge::margin(p, t);
    return m * m;
  }
  DTRAIN_HOST_DEVICE float gradient(float p, float t) const {
    return -2.0f * Hinge::sign(t) * Hinge::margin(p, t);
  }
};

/// p - t log(p), where p is the expected count.
struct Poisson {
  DTRAIN_HOST_DEVICE float value(float p, float t) const { return p - t * log(p + 1e-7f); }
  DTRAIN_HOST_DEVICE float gradient(float p, float t) const { return 1.0f - t / (p + 1e-7f); }
};

/// log(cosh(e)) for the error e = p - t. It is computed as |e| + log(1 + exp(-2 |e|)) - log 2, which never
/// overflows.
struct LogCosh {
  DTRAIN_HOST_DEVICE float value(float p, float t) const {
    const float a = ::fabsf(p - t);
    return a + log1p(exp(-2.0f * a)) - 0.693147181f;
  }
  DTRAIN_HOST_DEVICE float gradient(float p, float t) const { return tanh(p - t); }
};

/// t log(t / p) for probabilities p and t, both at least 1e-7. The gradient is 0 if p was clipped.
struct KlDivergence {
  DTRAIN_HOST_DEVICE static float bounded(float x) {
    x = x < 1e-7f ? 1e-7f : x;
    return x > 1.0f ? 1.0f : x;
  }
  DTRAIN_HOST_DEVICE float value(float p, float t) const { return bounded(t) * log(bounded(t) / bounded(p)); }
  DTRAIN_HOST_DEVICE float gradient(float p, float t) const {
    return bounded(p) == p ? -bounded(t) / p : p * 0.0f;
  }
};

/// (1 - q)^gamma times the binary cross-entropy, where q is the probability that the prediction p assigns to
/// the target (T.-Y. Lin et al., "Focal loss for dense object detection", ICCV 2017). If `balances` is true,
/// the loss is multiplied by alpha for targets of 1 and by 1 - alpha for targets of 0.
struct BinaryFocalCrossEntropy {
  float gamma, alpha;
  bool balances;

  DTRAIN_HOST_DEVICE float weight(float t) const {
    return balances ? t * alpha + (1.0f - t) * (1.0f - alpha) : 1.0f;
  }
  DTRAIN_HOST_DEVICE static float miss(float p, float t) { return 1.0f - (t * p + (1.0f - t) * (1.0f - p)); }
  DTRAIN_HOST_DEVICE float value(float p, float t) const {
    return weight(t) * power(miss(p, t), gamma) * BinaryCrossEntropy{}.value(p, t);
  }
  DTRAIN_HOST_DEVICE float gradient(float p, float t) const {
    const float slope = gamma * power(miss(p, t), gamma - 1.0f) * (1.0f - 2.0f * t);
    const BinaryCrossEntropy cross;
    return weight(t) * (slope * cross.value(p, t) + power(miss(p, t), gamma) * cross.gradient(p, t));
  }
};

/// BinaryFocalCrossEntropy of the probability sigmoid(x), for a logit x.
struct BinaryFocalCrossEntropyLogits {
  BinaryFocalCrossEntropy of;
  DTRAIN_HOST_DEVICE float value(float x, float t) const {
    const float p = sigmoid(x);
    return of.weight(t) * power(BinaryFocalCrossEntropy::miss(p, t), of.gamma) *
           BinaryCrossEntropyLogits{}.value(x, t);
  }
  DTRAIN_HOST_DEVICE float gradient(float x, float t) const {
    const float p = sigmoid(x), miss = BinaryFocalCrossEntropy::miss(p, t);
    const float slope = of.gamma * power(miss, of.gamma - 1.0f) * (1.0f - 2.0f * t) * p * (1.0f - p);
    const BinaryCrossEntropyLogits cross;
    return of.weight(t) * (slope * cross.value(x, t) + power(miss, of.gamma) * cross.gradient(x, t));
  }
};

/// A loss with label smoothing: the target t is replaced by kept * t + spread.
template <class Loss>
struct Smoothed {
  Loss of;
  float kept, spread;  // for a smoothing s: kept = 1 - s, spread = s / 2
  DTRAIN_HOST_DEVICE float value(float p, float t) const { return of.value(p, kept * t + spread); }
  DTRAIN_HOST_DEVICE float gradient(float p, float t) const { return of.gradient(p, kept * t + spread); }
};

/// Returns 1 if the predicted label equals the target, and 0 otherwise. The predicted label is 1 if the
/// prediction is above the threshold, and 0 otherwise.
struct BinaryAccuracy {
  float threshold;
  DTRAIN_HOST_DEVICE float value(float p, float t) const {
    return (p > threshold ? 1.0f : 0.0f) == t ? 1.0f : 0.0f;
  }
};

/// Calls use(loss) or, if the spec has label smoothing, use(Smoothed{loss}).
template <class Loss, class Use>
DTRAIN_HOST_DEVICE inline void with_smoothing(const ElementwiseLossSpec& spec, const Loss& loss, Use&& use) {
  if (spec.label_smoothing == 0.0f) return use(loss);
  use(Smoothed<Loss>{loss, 1.0f - spec.label_smoothing, 0.5f * spec.label_smoothing});
}

/// Calls use(loss) with the loss that the spec selects.
template <class Use>
DTRAIN_HOST_DEVICE inline void with_loss(const ElementwiseLossSpec& spec, Use&& use) {
  using Kind = ElementwiseLossSpec::Kind;
  switch (spec.kind) {
    case Kind::binary_crossentropy:
      return spec.from_logits ? with_smoothing(spec, BinaryCrossEntropyLogits{}, use)
                              : with_smoothing(spec, BinaryCrossEntropy{}, use);
    case Kind::mean_squared_error:
      return use(SquaredError{});
    case Kind::mean_absolute_error:
      return use(AbsoluteError{});
    case Kind::huber:
      return use(Huber{spec.delta});
    case Kind::mean_absolute_percentage_error:
      return use(AbsolutePercentageError{});
    case Kind::mean_squared_logarithmic_error:
      return use(SquaredLogarithmicError{});
    case Kind::hinge:
      return use(Hinge{});
    case Kind::squared_hinge:
      return use(SquaredHinge{});
    case Kind::poisson:
      return use(Poisson{});
    case Kind::log_cosh:
      return use(LogCosh{});
    case Kind::kl_divergence:
      return use(KlDivergence{});
    case Kind::binary_focal_crossentropy: {
      const BinaryFocalCrossEntropy focal{spec.gamma, spec.alpha, spec.balances_classes};
      return spec.from_logits ? with_smoothing(spec, BinaryFocalCrossEntropyLogits{focal}, use)
                              : with_smoothing(spec, focal, use);
    }
  }
}

}  // namespace dtrain::math
