// Detects columns of a table whose numbers have too many digits for float32.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace dtrain {

/// The precision that the numbers of a field would lose in float32.
struct DigitLoss {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  double error = 0;  // the largest difference between a number and its float32 value

  void add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
    error = std::max(error, std::abs(value - static_cast<double>(static_cast<float>(value))));
  }
  void add(const DigitLoss& other) {
    least = std::min(least, other.least);
    most = std::max(most, other.most);
    error = std::max(error, other.error);
  }
  /// Returns true if conversion to float32 changes a number by at least 0.5, or by a noticeable fraction of
  /// the range of all numbers.
  bool is_noticeable() const { return error >= 0.5 || (most > least && error > 0x1p-17 * (most - least)); }
};

}  // namespace dtrain
