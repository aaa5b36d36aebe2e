// How two arrays of floating point numbers differ.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/json.h"

namespace dtrain {

/// Two numbers are equal if their bits are, or if |a - b| <= tolerance * max(1, |b|); 0 and -0 are equal. A
/// NaN equals only NaN.
struct ArrayDifference {
  /// The numbers of units in the last place by which numbers differ: 1, 2 to 3, 4 to 15, 16 to 255, more; and
  /// the numbers of which one is NaN.
  static constexpr std::array<const char*, 6> kDistances{"1", "2-3", "4-15", "16-255", "more", "NaN"};

  int64_t elements = 0;
  int64_t different = 0;                  ///< numbers that are not equal
  std::array<int64_t, 6> distances = {};  ///< counts of the different numbers, as kDistances
  double largest = 0;   ///< the largest |a - b| of different numbers; infinity if one is NaN
  double relative = 0;  ///< the largest |a - b| / |b| of different numbers
};

/// Compares arrays of one size.
ArrayDifference compare_arrays(std::span<const float> a, std::span<const float> b, double tolerance);

/// The units in the last place between two numbers that are not NaN: 0 for 0 and -0.
int64_t ulps_between(float a, float b);

}  // namespace dtrain
