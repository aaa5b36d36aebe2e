// The spec of PReLU: x where positive, else x times a slope that is a parameter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace dtrain {

/// Which slope each element of an array has. Along an axis, outermost first, the slopes of neighbours are
/// `steps` apart; 0: they share one. Element (i0, ..., i5) has slope i0 * steps[0] + ... + i5 * steps[5], and
/// the axes with steps other than 0 lead to each slope once.
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
