// Batch normalization over rows that are split into parts (one per replica): the statistics of each part, and
// their combination.
//
// The statistics of a part's values are [1 + 2 channels] doubles: the number of values per channel, the
// means, the sums of squared distances from the mean. The statistics of its gradients are [2 channels]
// doubles: the sums of the gradient, and of its products with the normalized values.
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

  /// Adds the moments of `other`, as in T. Chan, G. Golub, R. LeVeque, "Updating formulae and a pairwise
  /// algorithm for computing sample variances", 1979: no large sums are subtracted from one another.
  DTRAIN_HOST_DEVICE void add(const Moments& other) {
    if (other.count == 0.0) return;
    const double total = count + other.count, distance = other.mean - mean;
    mean += distance * (other.count / total);
    squares += other.squares + distance * distance * (count * other.count / total);
    count = total;
  }
};

/// Returns a channel's moments over all parts, added in order. `partial` holds the statistics of the parts;
/// consecutive parts are `stride` doubles apart.
DTRAIN_HOST_DEVICE inline Moments moments_of(const double* partial, int64_t parts, int64_t stride,
                                             int64_t channels, int64_t channel) {
  Moments all;
  for (int64_t part = 0; part < parts; ++part) {
    const double* one = partial + part * stride;
    all.add({one[0], one[1 + channel], one[1 + channels + channel]});
  }
  return all;
}

/// Returns the mean of the squared distances; 0 if there are no values.
DTRAIN_HOST_DEVICE inline double variance_of(const Moments& moments) {
  return moments.count > 0.0 ? moments.squares / moments.count : 0.0;
}

/// Normalises a channel's values in float32: y = scale * (x - mean) + shift. `residual` is the part of the
/// mean that float32 cannot represent; it is included in the shift.
struct Normalizer {
  float mean, variance, residual, inverse, scale, shift;
};
/// Returns a channel's normalizer. Pass gamma 1 and beta 0 if the layer has none.
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

/// The gradient of x is scale * (the gradient of y, before a relu) + slope * (x - mean) + offset.
struct GradientLine {
  float slope, offset;
};
/// Returns a channel's line. `sum` and `product` are its gradient sums over all rows; `rows` is the number of
/// rows that the statistics cover. If there are no such rows, slope and offset are 0.
DTRAIN_HOST_DEVICE inline GradientLine gradient_line(double scale, double inverse, double residual,
                                                     double sum, double product, double rows) {
  if (rows == 0.0) return {0.0f, 0.0f};
  const double slope = -scale * inverse * product / rows;
  return {static_cast<float>(slope), static_cast<float>(-scale * sum / rows - slope * residual)};
}

}  // namespace dtrain::math
