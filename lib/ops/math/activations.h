// Activation functions, as in Keras. forward() computes the output of one element. backward() computes the
// gradient of the input from the gradient of the output and a saved value. The saved value is the output if
// from_output(spec) is true, and the input otherwise.
#pragma once

#include "base/host_device.h"
#include "ops/math/functions.h"
#include "ops/specs.h"

namespace dtrain::math {

struct Linear {
  DTRAIN_HOST_DEVICE float forward(float x) const { return x; }
  DTRAIN_HOST_DEVICE float backward(float, float diff) const { return diff; }
};

struct Relu {
  DTRAIN_HOST_DEVICE float forward(float x) const { return x < 0.0f ? 0.0f : x; }
  DTRAIN_HOST_DEVICE float backward(float y, float diff) const { return y > 0.0f ? diff : 0.0f; }
};

/// x, or alpha * x if x is negative. If alpha is not negative, the output has the same sign as the input, so
/// the gradient can be computed from the output.
struct LeakyRelu {
  float alpha;
  DTRAIN_HOST_DEVICE float forward(float x) const { return x < 0.0f ? alpha * x : x; }
  DTRAIN_HOST_DEVICE float backward(float y, float diff) const { return y > 0.0f ? diff : alpha * diff; }
};

struct Elu {
  float alpha;
  DTRAIN_HOST_DEVICE float forward(float x) const {
    // For small x, exp(x) - 1 loses precision. The series x + x^2/2 + x^3/6 + x^4/24 is accurate enough for
    // |x| up to 2^-5.
    const float series = x * (1.0f + x * (0.5f + x * (0.166666667f + x * 0.0416666667f)));
    const float negative = x > -0.03125f ? series : exp(x) - 1.0f;
    return x < 0.0f ? alpha * negative : x;
  }
  DTRAIN_HOST_DEVICE float backward(float y, float diff) const {
    return y > 0.0f ? diff : diff * (y + alpha);
  }
};

struct Tanh {
  DTRAIN_HOST_DEVICE float forward(float x) const { return tanh(x); }
  DTRAIN_HOST_DEVICE float backward(float y, float diff) const { return diff * (1.0f - y * y); }
};

struct Sigmoid {
  DTRAIN_HOST_DEVICE float forward(float x) const { return sigmoid(x); }
  DTRAIN_HOST_DEVICE float backward(float y, float diff) const { return diff * y * (1.0f - y); }
};

/// x * sigmoid(x).
struct Silu {
  DTRAIN_HOST_DEVICE float forward(float x) const { return x * sigmoid(x); }
  DTRAIN_HOST_DEVICE float backward(float x, float diff) const {
    const float s = sigmoid(x);
    return diff * s * (1.0f + x * (1.0f - s));
  }
};

/// x times the cumulative distribution function of the standard normal distribution; D. Hendrycks and K.
/// Gimpel, "Gaussian error linear units", 2016.
struct Gelu {
  DTRAIN_HOST_DEVICE float forward(float x) const { return x * cumulative(x); }
  DTRAIN_HOST_DEVICE float backward(float x, float diff) const {
    return diff * (cumulative(x) + x * 0.398942280f * exp(-0.5f * x * x));
  }
  DTRAIN_HOST_DEVICE static float cumulative(float x) { return 0.5f + 0.5f * erf(x * 0.707106781f); }
};

/// Approximation of gelu by tanh, from the same source.
struct GeluTanh {
  DTRAIN_HOST_DEVICE float forward(float x) const { return x * 0.5f * (1.0f + tanh(inner(x))); }
  DTRAIN_HOST_DEVICE float backward(float x, float diff) const {
    const float t = tanh(inner(x));
    const float slope = 0.797884561f * (1.0f + 0.134145f * x * x);
    return diff * 0.5f * ((1.0f + t) + x * (1.0f - t * t) * slope);
  }
  DTRAIN_HOST_DEVICE static float inner(float x) { return 0.797884561f * (x + 0.044715f * x * x * x); }
};

/// Keras's relu with options: `maximum` if x is greater than the maximum, x if it is between threshold and
/// maximum, and slope * (x - threshold) if it is at most the threshold.
struct ClippedRelu {
  float slope, maximum, threshold;
  DTRAIN_HOST_DEVICE float forward(float x) const {
    const float below = slope == 0.0f ? 0.0f : slope * (x - threshold);  // avoids 0 * infinity, which is NaN
    const float above = x > maximum ? maximum : x;
    return x <= threshold ? below : above;
  }
  /// `saved` is the output if from_output(spec) is true, and the input otherwise. This function works with
  /// both, because the input and the output are on the same side of the threshold and of the maximum.
  DTRAIN_HOST_DEVICE float backward(float saved, float diff) const {
    const float above = saved < maximum ? diff : 0.0f;
    return saved > threshold ? above : slope * diff;
  }
};

/// log(1 + exp(x)).
struct Softplus {
  DTRAIN_HOST_DEVICE float forward(float x) const {
    const float positive = x < 0.0f ? 0.0f : x;
    return positive + log1p(exp(x < 0.0f ? x : -x));
  }
  DTRAIN_HOST_DEVICE float backward(float x, float diff) const { return diff * sigmoid(x); }
};

/// x / (1 + |x|).
struct Softsign {
  DTRAIN_HOST_DEVICE float forward(float x) const { return x / (1.0f + (x < 0.0f ? -x : x)); }
  DTRAIN_HOST_DEVICE float backward(float y, float diff) const {
    const float rest = 1.0f - (y < 0.0f ? -y : y);
    return diff * rest * rest;
  }
};

/// slope x + 1/2 between 0 and 1.
struct HardSigmoid {
  float slope;
  DTRAIN_HOST_DEVICE float forward(float x) const {
    const float line = slope * x + 0.5f;
    const float positive = line < 0.0f ? 0.0f : line;
    return positive > 1.0f ? 1.0f : positive;
  }
  DTRAIN_HOST_DEVICE float backward(float x, float diff) const {
    const float line = slope * x + 0.5f;
    return line > 0.0f && line < 1.0f ? slope * diff : 0.0f;
  }
};

/// x times its hard sigmoid of slope 1/6; A. Howard et al., "Searching for MobileNetV3", 2019.
struct HardSilu {
  DTRAIN_HOST_DEVICE float forward(float x) const {
    const float curve = x * (0.166666667f * x + 0.5f);
    const float above = x > 3.0f ? x : curve;
    return x < -3.0f ? 0.0f : above;
  }
  DTRAIN_HOST_DEVICE float backward(float x, float diff) const {
    const float above = x > 3.0f ? diff : diff * (0.333333333f * x + 0.5f);
    return x < -3.0f ? 0.0f : above;
  }
};

/// G. Klambauer et al., "Self-normalizing neural networks", 2017.
struct Selu {
  static constexpr float kScale = 1.05070099f, kAlpha = 1.67326324f;
  DTRAIN_HOST_DEVICE float forward(float x) const { return kScale * Elu{kAlpha}.forward(x); }
  DTRAIN_HOST_DEVICE float backward(float y, float diff) const {
    return diff * (y > 0.0f ? kScale : y + kScale * kAlpha);
  }
};

struct Exponential {
  DTRAIN_HOST_DEVICE float forward(float x) const { return exp(x); }
  DTRAIN_HOST_DEVICE float backward(float y, float diff) const { return diff * y; }
};

/// x tanh(log(1 + exp(x))); D. Misra, "Mish: A self regularized non-monotonic activation function", 2019.
/// With n = exp(x), the tanh is n (n + 2) / (n (n + 2) + 2).
struct Mish {
  DTRAIN_HOST_DEVICE float forward(float x) const {
    const float n = power(x), m = n * (n + 2.0f);
    return x * (m / (m + 2.0f));
  }
  DTRAIN_HOST_DEVICE float backward(float x, float diff) const {
    const float n = power(x), m = n * (n + 2.0f);
    return diff * (m / (m + 2.0f) + x * (4.0f * n * (n + 1.0f) / ((m + 2.0f) * (m + 2.0f))));
  }
  /// Returns exp(min(x, 20)). The limit does not change the result, because the tanh rounds to 1 from x = 20
  /// on.
  DTRAIN_HOST_DEVICE static float power(float x) { return exp(x > 20.0f ? 20.0f : x); }
};

/// If the spec's activation is a common one, calls use(activation) and returns true. Otherwise, returns
/// false.
template <class Use>
DTRAIN_HOST_DEVICE inline bool with_usual_activation(const ActivationSpec& spec, Use&& use) {
  switch (spec.kind) {
    case Activation::linear:
      use(Linear{});
      return true;
    case Activation::relu:
      use(Relu{});
      return true;
    case Activation::leaky_relu:
      use(LeakyRelu{spec.alpha});
      return true;
    case Activation::gelu:
      spec.approximate ? use(GeluTanh{}) : use(Gelu{});
      return true;
    case Activation::silu:
      use(Silu{});
      return true;
    case Activation::tanh:
      use(Tanh{});
      return true;
    case Activation::sigmoid:
      use(Sigmoid{});
      return true;
    case Activation::elu:
      use(Elu{spec.alpha});
      return true;
    default:
      return false;
  }
}

/// Calls use(activation) with the spec's activation, which must be one for which with_usual_activation()
/// returns false.
template <class Use>
DTRAIN_HOST_DEVICE inline void with_unusual_activation(const ActivationSpec& spec, Use&& use) {
  switch (spec.kind) {
    case Activation::clipped_relu:
      return use(ClippedRelu{spec.alpha, spec.maximum, spec.threshold});
    case Activation::softplus:
      return use(Softplus{});
    case Activation::softsign:
      return use(Softsign{});
    case Activation::hard_sigmoid:
      return use(HardSigmoid{spec.alpha});
    case Activation::hard_silu:
      return use(HardSilu{});
    case Activation::selu:
      return use(Selu{});
    case Activation::exponential:
      return use(Exponential{});
    case Activation::mish:
      return use(Mish{});
    default:
      return;
  }
}

/// Calls use(activation) with the spec's activation. Each activation has a separate type, so a loop inside
/// use() is compiled separately for each activation and need not select the activation for every element.
template <class Use>
DTRAIN_HOST_DEVICE inline void with_activation(const ActivationSpec& spec, Use&& use) {
  if (!with_usual_activation(spec, use)) with_unusual_activation(spec, use);
}

/// Any of the less common activations. The activation is selected at run time for every element, which is
/// slower but needs only one instance of a kernel.
struct UnusualActivation {
  ActivationSpec spec;
  DTRAIN_HOST_DEVICE float forward(float x) const {
    float y = x;
    with_unusual_activation(spec, [&](auto activation) { y = activation.forward(x); });
    return y;
  }
  DTRAIN_HOST_DEVICE float backward(float saved, float diff) const {
    float result = diff;
    with_unusual_activation(spec, [&](auto activation) { result = activation.backward(saved, diff); });
    return result;
  }
};

/// Calls use(activation) for kernels that are instantiated for each activation. All less common activations
/// share one instance, UnusualActivation, to keep the program small.
template <class Use>
inline void with_activation_kernel(const ActivationSpec& spec, Use&& use) {
  if (!with_usual_activation(spec, use)) use(UnusualActivation{spec});
}

}  // namespace dtrain::math
