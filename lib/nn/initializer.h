// How weights begin.
#pragma once

#include "base/philox.h"
#include "base/shape.h"
#include "config/registry.h"

namespace dtrain {

/// Fills a new parameter. A pure function of (random, shape): every replica and every run with the seed
/// begins alike.
class Initializer {
 public:
  virtual ~Initializer() = default;
  virtual void fill(float* values, const Shape& shape, const Philox& random) const = 0;
};

template <>
const Registry<Initializer>& registry<Initializer>();

/// Keras's fan_in and fan_out: of [in, out] kernels as they stand; of convolutions [receptive field ..., in,
/// out] times the field.
struct Fans {
  double in, out;
};
Fans fans_of(const Shape& shape);

}  // namespace dtrain
