// The spec of PReLU. The result is x if x is positive, and x times a trainable slope otherwise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace dtrain {

/// Assigns a slope to each element of an array. The axes of the array are ordered from outermost to
/// innermost. Element (i0, ..., i5) has the slope with the index i0 * steps[0] + ... + i5 * steps[5]. If the
/// step of an axis is 0, all elements along this axis share a slope. The steps of the other axes must assign
/// a different slope to each combination of the indices along these axes.
struct PreluSpec {
  static constexpr size_t kAxes = 6;
  std::array<int64_t, kAxes> extents{1, 1, 1, 1, 1, 1}, steps{};

  int64_t elements() const {
    int64_t product = 1;
    for (const int64_t extent : extents) product *= extent;
    return product;
  }
  int64_t slopes() const {
    int64_t product = 1;
    for (size_t axis = 0; axis < kAxes; ++axis)
      if (steps[axis] != 0) product *= extents[axis];
    return product;
  }
};

}  // namespace dtrain
