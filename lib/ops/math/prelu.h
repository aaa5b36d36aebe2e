// PReLU, one element at a time. As in Keras, both gradients are 0 if the element is 0.
#pragma once

#include "base/host_device.h"

namespace dtrain::math {

DTRAIN_HOST_DEVICE inline float prelu(float x, float slope) {
  return x < 0.0f ? slope * x : x;
}
/// Returns the gradient of x.
DTRAIN_HOST_DEVICE inline float prelu_backward(float x, float slope, float diff) {
  return x > 0.0f ? diff : x < 0.0f ? slope * diff : 0.0f;
}
/// Returns the contribution of an element to the gradient of its slope.
DTRAIN_HOST_DEVICE inline float prelu_slope_gradient(float x, float diff) {
  return x < 0.0f ? x * diff : 0.0f;
}

}  // namespace dtrain::math
