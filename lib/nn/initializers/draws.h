// Arrays of random numbers, element i a function of (random, i) alone.
#pragma once

#include <cstdint>

#include "base/philox.h"

namespace dtrain {

/// Uniform in [low, high).
void draw_uniform(float* values, int64_t n, double low, double high, const Philox& random);
void draw_normal(float* values, int64_t n, double mean, double deviation, const Philox& random);
/// Normal, drawn again where it is more than two deviations from the mean.
void draw_truncated_normal(float* values, int64_t n, double mean, double deviation, const Philox& random);

}  // namespace dtrain
