// Fills arrays with random numbers. Element i depends only on (random, i).
#pragma once

#include <cstdint>

#include "base/philox.h"

namespace dtrain {

/// Draws from the uniform distribution in [low, high).
void draw_uniform(float* values, int64_t n, double low, double high, const Philox& random);
void draw_normal(float* values, int64_t n, double mean, double deviation, const Philox& random);
/// Draws from the normal distribution. Numbers more than two standard deviations from the mean are drawn
/// again.
void draw_truncated_normal(float* values, int64_t n, double mean, double deviation, const Philox& random);

}  // namespace dtrain
