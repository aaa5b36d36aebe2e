// Adafactor stores only the mean squares of each row and each column of a matrix. These functions estimate
// the mean square of each element from them.
#pragma once

#include <cstdint>
#include <math.h>

#include "base/host_device.h"

namespace dtrain::math {

struct Means {
  const float* values;
  int64_t n;
};

/// Returns the row means or the column means of a matrix, whichever are fewer. The mean of the returned means
/// is the mean of the whole matrix in both cases.
DTRAIN_HOST_DEVICE inline Means fewer_means(const float* row_means, int64_t rows, const float* column_means,
                                            int64_t columns) {
  return rows <= columns ? Means{row_means, rows} : Means{column_means, columns};
}

/// Returns the factor of a row that must be passed to factored_direction().
DTRAIN_HOST_DEVICE inline float row_factor(double mean, float row_mean) {
  return static_cast<float>(::sqrt(mean / static_cast<double>(row_mean)));
}

/// Returns g / sqrt(row_mean / mean * column_mean). The formula avoids the product row_mean * column_mean,
/// which could underflow: if all gradients of a row and of a column are 0, both means are 1e-30.
DTRAIN_HOST_DEVICE inline float factored_direction(float g, float row_factor, float column_mean) {
  return g * row_factor / ::sqrtf(column_mean);
}

}  // namespace dtrain::math
