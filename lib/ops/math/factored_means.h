// Adafactor's estimate of the mean square of each element of a matrix from the means of rows and columns.
#pragma once

#include <cstdint>
#include <math.h>

#include "base/host_device.h"

namespace dtrain::math {

struct Means {
  const float* values;
  int64_t n;
};

/// Returns the row means of a matrix or its column means, whichever are fewer. In both cases, their mean is
/// the mean of the matrix.
DTRAIN_HOST_DEVICE inline Means fewer_means(const float* row_means, int64_t rows, const float* column_means,
                                            int64_t columns) {
  return rows <= columns ? Means{row_means, rows} : Means{column_means, columns};
}

/// Returns the factor by which factored_direction() multiplies the gradients of a row.
DTRAIN_HOST_DEVICE inline float row_factor(double mean, float row_mean) {
  return static_cast<float>(::sqrt(mean / static_cast<double>(row_mean)));
}

/// Returns g / sqrt(row_mean / mean * column_mean). The product of both means could underflow: the means of a
/// row and a column whose gradients are 0 are both 1e-30.
DTRAIN_HOST_DEVICE inline float factored_direction(float g, float row_factor, float column_mean) {
  return g * row_factor / ::sqrtf(column_mean);
}

}  // namespace dtrain::math
