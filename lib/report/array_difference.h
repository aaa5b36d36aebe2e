// Compares two arrays of floating-point numbers.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/json.h"

namespace dtrain {

/// Statistics of the differences between two arrays. Two numbers are equal if their bits are equal, or if |a
/// - b| <= tolerance * max(1, |b|). 0 equals -0, and NaN equals only NaN.
struct ArrayDifference {
  /// Classes of distances. The distance between two numbers is measured in units in the last place (ULPs). In
  /// the class "NaN", one of the two numbers is NaN.
  static constexpr std::array<const char*, 6> kDistances{"1", "2-3", "4-15", "16-255", "more", "NaN"};

  int64_t elements = 0;
  int64_t different = 0;                  ///< numbers that are not equal
  std::array<int64_t, 6> distances = {};  ///< number of differences in each class of kDistances
  double largest = 0;   ///< the largest |a - b| of numbers that are not equal; infinity if one of them is NaN
  double relative = 0;  ///< the largest |a - b| / |b| of numbers that are not equal
};

/// Compares two arrays of the same size.
ArrayDifference compare_arrays(std::span<const float> a, std::span<const float> b, double tolerance);

/// Returns the distance between two numbers in ULPs. It is 0 for 0 and -0. The numbers must not be NaN.
int64_t ulps_between(float a, float b);

}  // namespace dtrain
