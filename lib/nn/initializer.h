// The interface of weight initializers.
#pragma once

#include "base/philox.h"
#include "base/shape.h"
#include "config/registry.h"

namespace dtrain {

/// Fills a new parameter. The values are a pure function of (random, shape): every replica, and every run
/// with the same seed, starts with equal values.
class Initializer {
 public:
  virtual ~Initializer() = default;
  virtual void fill(float* values, const Shape& shape, const Philox& random) const = 0;
};

template <>
const Registry<Initializer>& registry<Initializer>();

/// Keras's fan_in and fan_out. For a kernel of shape [in, out], fan_in is `in` and fan_out is `out`. For a
/// convolution kernel of shape [receptive field ..., in, out], both numbers are multiplied by the size of the
/// receptive field.
struct Fans {
  double in, out;
};
Fans fans_of(const Shape& shape);

}  // namespace dtrain
