// Shared code of loss and metric tests: predictions, targets and row weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "ops/fixture.h"

namespace dtrain::test {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Extent {
  int64_t rows, columns;
};
inline constexpr Extent kExtents[] = {{1, 1}, {1, 5}, {64, 10}, {7, 100}, {1000, 17}, {3, 3000}};

inline size_t elements(const Extent& extent) {
  return static_cast<size_t>(extent.rows * extent.columns);
}

inline View view_of(const Array<int32_t>& classes, int64_t rows) {
  return {classes.data(), {rows}, DType::int32, Layout::plain};
}
inline View view_of(const Array<float>& values, const Extent& extent) {
  return {values.data(), {extent.rows, extent.columns}, DType::float32, Layout::plain};
}

/// Returns the amount that run(total) adds to `total`. The initial total is not 0.
template <class Run>
double added(const Device& device, Run&& run) {
  constexpr double kBefore = -2;
  const auto total = device.array(Doubles{kBefore});
  run(total.data());
  return total.read()[0] - kBefore;
}

/// Row weights, some of which are 0. There is one weight for every `rows_per_weight` rows. If `weighted` is
/// false, all rows count equally.
struct Weights {
  Weights(const Device& device, int64_t count, int64_t rows_of_one, bool has_weights)
      : rows_per_weight(rows_of_one), weighted(has_weights) {
    for (int64_t i = 0; i < (count + rows_per_weight - 1) / rows_per_weight; ++i)
      values.push_back(weighted ? 0.5f * static_cast<float>(i % 5) : 1.0f);
    own = device.array(values);
  }
  RowWeights rows() const { return {weighted ? own.data() : nullptr, rows_per_weight}; }
  double of(int64_t row) const {
    return static_cast<double>(values[static_cast<size_t>(row / rows_per_weight)]);
  }

  int64_t rows_per_weight;
  bool weighted;
  Floats values;
  Array<float> own = {};
};

/// Returns rows that are probability distributions.
inline Floats distributions(const Extent& extent, uint64_t seed) {
  Floats values = random_floats(extent.rows * extent.columns, seed);
  for (int64_t r = 0; r < extent.rows; ++r) {
    float* row = values.data() + r * extent.columns;
    float total = 0;
    for (int64_t c = 0; c < extent.columns; ++c) total += row[c] = std::abs(row[c]) + 0.01f;
    for (int64_t c = 0; c < extent.columns; ++c) row[c] /= total;
  }
  return values;
}

/// Clips a probability as losses do before they take its logarithm.
inline double clipped(double p) {
  return std::min(std::max(p, 1e-7), 1 - 1e-7);
}

/// A loss's inputs in device memory. run(arguments) calls the operation.
struct LossBatch {
  const Device& device;
  Extent extent;
  const void* prediction;
  View target;
  RowWeights weights = {};

  /// Returns the amount that the loss adds to its total.
  template <class Run>
  double total(Run&& run, void* diff = nullptr, float scale = 1, const float* loss_scale = nullptr) const {
    return added(device, [&](double* to) {
      run({.prediction = prediction,
           .target = target,
           .weights = weights,
           .total = to,
           .rows = extent.rows,
           .columns = extent.columns,
           .diff_prediction = diff,
           .scale = scale,
           .loss_scale = loss_scale});
    });
  }

  /// Checks the total, with and without a gradient, and returns the gradient for `scale`. Also checks that
  /// the gradient has the same bits if part of the scale is passed as a loss scale in device memory.
  template <class Run>
  Floats check(Run&& run, double expected, float scale, double tolerance) const {
    const TypedArray diff = device.typed(elements(extent));
    constexpr float kLossScale = 4;
    const auto loss_scale = device.array(Floats{kLossScale});
    const auto approximately = doctest::Approx(expected).epsilon(tolerance);
    CHECK(total(run, diff.data(), scale) == approximately);
    Floats gradient = diff.read();
    CHECK(total(run, diff.data(), scale / kLossScale, loss_scale.data()) == approximately);
    CHECK(diff.read() == gradient);
    CHECK(total(run, nullptr, scale) == approximately);
    return gradient;
  }
};

}  // namespace dtrain::test
