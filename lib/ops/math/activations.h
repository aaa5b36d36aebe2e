// Activations: `forward` of one element, and `backward`, the gradient of the input by what was saved of it
// (the output where from_output(spec), else the input) and the gradient of the output. Rules as in Keras.
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

/// The output tells the input's sign where alpha is not negative.
struct LeakyRelu {
  float alpha;
  DTRAIN_HOST_DEVICE float forward(float x) const { return x < 0.0f ? alpha * x : x; }
  DTRAIN_HOST_DEVICE float backward(float y, float diff) const { return y > 0.0f ? diff : alpha * diff; }
};

struct Elu {
  float alpha;
  DTRAIN_HOST_DEVICE float forward(float x) const {
    // exp(x) - 1 loses x where it is small; x + x^2/2 + x^3/6 + x^4/24 is exact enough up to 2^-5.
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

/// x times the normal distribution's cumulative function; D. Hendrycks and K. Gimpel, "Gaussian error linear
/// units", 2016.
struct Gelu {
  DTRAIN_HOST_DEVICE float forward(float x) const { return x * cumulative(x); }
  DTRAIN_HOST_DEVICE float backward(float x, float diff) const {
    return diff * (cumulative(x) + x * 0.398942280f * exp(-0.5f * x * x));
  }
  DTRAIN_HOST_DEVICE static float cumulative(float x) { return 0.5f + 0.5f * erf(x * 0.707106781f); }
};

/// The same source's approximation by tanh.
struct GeluTanh {
  DTRAIN_HOST_DEVICE float forward(float x) const { return x * 0.5f * (1.0f + tanh(inner(x))); }
  DTRAIN_HOST_DEVICE float backward(float x, float diff) const {
    const float t = tanh(inner(x));
    const float slope = 0.797884561f * (1.0f + 0.134145f * x * x);
    return diff * 0.5f * ((1.0f + t) + x * (1.0f - t * t) * slope);
  }
  DTRAIN_HOST_DEVICE static float inner(float x) { return 0.797884561f * (x + 0.044715f * x * x * x); }
};

/// use(activation) with the activation that the spec names: one loop each, nothing decided per element.
template <class Use>
DTRAIN_HOST_DEVICE inline void with_activation(const ActivationSpec& spec, Use&& use) {
  switch (spec.kind) {
    case Activation::linear:
      return use(Linear{});
    case Activation::relu:
      return use(Relu{});
    case Activation::leaky_relu:
      return use(LeakyRelu{spec.alpha});
    case Activation::gelu:
      return spec.approximate ? use(GeluTanh{}) : use(Gelu{});
    case Activation::silu:
      return use(Silu{});
    case Activation::tanh:
      return use(Tanh{});
    case Activation::sigmoid:
      return use(Sigmoid{});
    case Activation::elu:
      return use(Elu{spec.alpha});
  }
}

}  // namespace dtrain::math
