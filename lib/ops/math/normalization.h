// Batch normalization over rows that are split into parts (for example, one part per replica): the statistics
// of each part, and how they are combined.
//
// The moments of a part are [1 + 2 channels] doubles: the number of values per channel, the mean of each
// channel, and the sum of the squared distances from the mean of each channel. The gradient sums of a part
// are [2 channels] doubles: for each channel, the sum of the gradients, and the sum of the gradients times
// the normalized values.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/host_device.h"

namespace dtrain::math {

DTRAIN_HOST_DEVICE inline int64_t moments_size(int64_t channels) {
  return 1 + 2 * channels;
}
DTRAIN_HOST_DEVICE inline int64_t gradient_sums_size(int64_t channels) {
  return 2 * channels;
}

/// Moments of a channel's values: their number, their mean, and the sum of their squared distances from the
/// mean.
struct Moments {
  double count = 0, mean = 0, squares = 0;

  /// Combines these moments with the moments of `other`, as in T. Chan, G. Golub, R. LeVeque, "Updating
  /// formulae and a pairwise algorithm for computing sample variances", 1979. The formula is precise, because
  /// it does not subtract large sums from one another.
  DTRAIN_HOST_DEVICE void add(const Moments& other) {
    if (other.count == 0.0) return;
    const double total = count + other.count, distance = other.mean - mean;
    mean += distance * (other.count / total);
    squares += other.squares + distance * distance * (count * other.count / total);
    count = total;
  }
};

/// Returns the moments of a channel over all parts, combined in the order of the parts. `partial` holds the
/// moments of the parts; consecutive parts are `stride` doubles apart.
DTRAIN_HOST_DEVICE inline Moments moments_of(const double* partial, int64_t parts, int64_t stride,
                                             int64_t channels, int64_t channel) {
  Moments all;
  for (int64_t part = 0; part < parts; ++part) {
    const double* one = partial + part * stride;
    all.add({one[0], one[1 + channel], one[1 + channels + channel]});
  }
  return all;
}

/// Returns the mean of the squared distances from the mean, or 0 if there are no values.
DTRAIN_HOST_DEVICE inline double variance_of(const Moments& moments) {
  return moments.count > 0.0 ? moments.squares / moments.count : 0.0;
}

/// The numbers that normalize a channel in float32: y = scale * (x - mean) + shift. `residual` is the
/// rounding error of `mean`, that is, the exact mean minus its float32 value. The shift includes the
/// correction for this error.
struct Normalizer {
  float mean, variance, residual, inverse, scale, shift;
};
/// Returns the normalizer of a channel. If the layer has no gamma, pass 1; if it has no beta, pass 0.
DTRAIN_HOST_DEVICE inline Normalizer normalizer_of(double mean, double variance, float epsilon, float gamma,
                                                   float beta) {
  Normalizer n;
  n.mean = static_cast<float>(mean);
  n.variance = static_cast<float>(variance);
  n.residual = static_cast<float>(mean - static_cast<double>(n.mean));
  n.inverse = 1.0f / ::sqrtf(n.variance + epsilon);
  n.scale = gamma * n.inverse;
  n.shift = beta - n.residual * n.scale;
  return n;
}

/// The numbers from which the gradient of x is computed. The gradient of x is scale * (the gradient of y
/// before the relu) + slope * (x - mean) + offset.
struct GradientLine {
  float slope, offset;
};
/// Returns slope and offset of a channel. `sum` and `product` are the gradient sums of the channel over all
/// rows. `rows` is the number of rows over which the statistics were computed; if it is 0, slope and offset
/// are 0.
DTRAIN_HOST_DEVICE inline GradientLine gradient_line(double scale, double inverse, double residual,
                                                     double sum, double product, double rows) {
  if (rows == 0.0) return {0.0f, 0.0f};
  const double slope = -scale * inverse * product / rows;
  return {static_cast<float>(slope), static_cast<float>(-scale * sum / rows - slope * residual)};
}

}  // namespace dtrain::math
