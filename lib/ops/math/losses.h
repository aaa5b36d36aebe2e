// Losses and metrics of one element: `value`, and the gradient by the prediction. Rules as in Keras.
#pragma once

#include "base/host_device.h"
#include "ops/math/functions.h"
#include "ops/specs.h"

namespace dtrain::math {

/// Keras's bounds of a probability whose logarithm is taken. NaN stays.
DTRAIN_HOST_DEVICE inline float clip_probability(float p) {
  constexpr float kLeast = 1e-7f, kMost = 1.0f - 1e-7f;
  p = p < kLeast ? kLeast : p;
  return p > kMost ? kMost : p;
}

/// -t log(p), p a probability. Where p was clipped its gradient is 0.
struct NegativeLogLikelihood {
  DTRAIN_HOST_DEVICE float value(float p, float t) const {
    return t == 0.0f ? p * 0.0f : -t * log(clip_probability(p));
  }
  DTRAIN_HOST_DEVICE float gradient(float p, float t) const {
    return clip_probability(p) == p ? -t / p : p * 0.0f;
  }
};

struct BinaryCrossEntropy {
  DTRAIN_HOST_DEVICE float value(float p, float t) const {
    const float q = clip_probability(p);
    return -(t * log(q) + (1.0f - t) * log(1.0f - q));
  }
  DTRAIN_HOST_DEVICE float gradient(float p, float t) const {
    return clip_probability(p) == p ? (p - t) / (p * (1.0f - p)) : p * 0.0f;
  }
};

/// max(x, 0) - x t + log(1 + exp(-|x|)): no overflow, whatever the logit x.
struct BinaryCrossEntropyLogits {
  DTRAIN_HOST_DEVICE float value(float x, float t) const {
    return (x < 0.0f ? 0.0f : x) - x * t + log1p(exp(-::fabsf(x)));
  }
  DTRAIN_HOST_DEVICE float gradient(float x, float t) const { return sigmoid(x) - t; }
};

struct SquaredError {
  DTRAIN_HOST_DEVICE float value(float p, float t) const { return (p - t) * (p - t); }
  DTRAIN_HOST_DEVICE float gradient(float p, float t) const { return 2.0f * (p - t); }
};

struct AbsoluteError {
  DTRAIN_HOST_DEVICE float value(float p, float t) const { return ::fabsf(p - t); }
  DTRAIN_HOST_DEVICE float gradient(float p, float t) const {
    const float e = p - t;
    return e > 0.0f ? 1.0f : (e < 0.0f ? -1.0f : e);  // 0 and NaN as they are
  }
};

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

/// The target's answer at 0.5, as the labels are 0 and 1.
struct BinaryAccuracy {
  float threshold;
  DTRAIN_HOST_DEVICE float value(float p, float t) const {
    return (p > threshold ? 1.0f : 0.0f) == t ? 1.0f : 0.0f;
  }
};

/// use(loss) with the loss that the spec names.
template <class Use>
DTRAIN_HOST_DEVICE inline void with_loss(const ElementwiseLossSpec& spec, Use&& use) {
  using Kind = ElementwiseLossSpec::Kind;
  switch (spec.kind) {
    case Kind::binary_crossentropy:
      return spec.from_logits ? use(BinaryCrossEntropyLogits{}) : use(BinaryCrossEntropy{});
    case Kind::mean_squared_error:
      return use(SquaredError{});
    case Kind::mean_absolute_error:
      return use(AbsoluteError{});
    case Kind::huber:
      return use(Huber{spec.delta});
  }
}

}  // namespace dtrain::math
