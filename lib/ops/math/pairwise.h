// Sums of squares that have the same bits however an array is cut: terms are summed pairwise, neighbour with
// neighbour, then these sums with theirs (N. Higham, "The accuracy of floating point summation", SIAM J. Sci.
// Comput. 14, 1993, section 2). The sum of 2^k terms that begin at a multiple of 2^k is then a node of one
// tree, wherever it was made; missing terms at the end are zeros.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace dtrain::math {

/// A term is the sum of the squares of so many floats. Parameters, and the parts of those that are cut, begin
/// at a multiple of it.
inline constexpr int64_t kSquaresGrain = 16;

/// The sum of the squares of kSquaresGrain floats.
DTRAIN_HOST_DEVICE inline double grain_of_squares(const float* values) {
  constexpr int kHalf = static_cast<int>(kSquaresGrain) / 2;
  double sums[kHalf];
  for (int i = 0; i < kHalf; ++i) {
    const auto a = static_cast<double>(values[i]), b = static_cast<double>(values[i + kHalf]);
    sums[i] = a * a + b * b;  // the squares of floats are exact
  }
  for (int n = kHalf / 2; n > 0; n /= 2)
    for (int i = 0; i < n; ++i) sums[i] += sums[i + n];
  return sums[0];
}

/// The sum of n terms, which are overwritten.
DTRAIN_HOST_DEVICE inline double pairwise_sum(double* terms, int64_t n) {
  if (n == 0) return 0.0;
  for (; n > 1; n = (n + 1) / 2) {
    for (int64_t i = 0; i < n / 2; ++i) terms[i] = terms[2 * i] + terms[2 * i + 1];
    if (n % 2 == 1) terms[n / 2] = terms[n - 1];
  }
  return terms[0];
}

/// Such a sum of what comes one by one, from the first term on.
class PairwiseSum {
 public:
  /// `sum`: of the next 2^level terms, where so far a multiple of as many has come.
  DTRAIN_HOST_DEVICE void add(double sum, int level = 0) {
    const int64_t terms = int64_t{1} << level;
    for (int64_t waiting = count_ >> level; waiting & 1; waiting >>= 1) sum = sums_[level++] + sum;
    sums_[level] = sum;
    count_ += terms;
  }
  DTRAIN_HOST_DEVICE double total() const {
    double total = 0.0;
    int level = 0;
    for (int64_t waiting = count_; waiting != 0; waiting >>= 1, ++level)
      if (waiting & 1) total = sums_[level] + total;
    return total;
  }
  /// How many terms have come.
  DTRAIN_HOST_DEVICE int64_t count() const { return count_; }

 private:
  double sums_[63];  // by level; those of the bits of count_ mean something
  int64_t count_ = 0;
};

/// The floats of each piece of an array of n that is summed by pieces: `least`, which is a power of two of
/// grains, doubled until there are at most kMostSquaresPieces of them.
inline constexpr int64_t kMostSquaresPieces = 1024;
inline int64_t squares_piece(int64_t n, int64_t least) {
  int64_t piece = least;
  while (piece * kMostSquaresPieces < n) piece *= 2;
  return piece;
}

}  // namespace dtrain::math
