// Sums of squares that are bitwise the same no matter into which parts an array is split. Terms are summed
// pairwise: each term is added to its neighbor, then these sums are added to their neighbors, and so on (N.
// Higham, "The accuracy of floating point summation", SIAM J. Sci. Comput. 14, 1993, section 2). These sums
// form a binary tree. If 2^k terms start at a multiple of 2^k, their sum is a node of this tree, no matter
// where the sum is computed. Missing terms at the end count as zeros.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace dtrain::math {

/// Number of floats per term; a term is the sum of the squares of these floats. Parameters, and the parts of
/// split parameters, start at multiples of this number.
inline constexpr int64_t kSquaresGrain = 16;

/// Returns the sum of the squares of kSquaresGrain floats.
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

/// Returns the pairwise sum of n terms. Overwrites the terms.
DTRAIN_HOST_DEVICE inline double pairwise_sum(double* terms, int64_t n) {
  if (n == 0) return 0.0;
  for (; n > 1; n = (n + 1) / 2) {
    for (int64_t i = 0; i < n / 2; ++i) terms[i] = terms[2 * i] + terms[2 * i + 1];
    if (n % 2 == 1) terms[n / 2] = terms[n - 1];
  }
  return terms[0];
}

/// The pairwise sum of terms that are added one by one, in order.
class PairwiseSum {
 public:
  /// Adds the sum of the next 2^level terms. The number of terms that were added before must be a multiple of
  /// 2^level.
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
  /// Returns the number of terms added so far.
  DTRAIN_HOST_DEVICE int64_t count() const { return count_; }

 private:
  double sums_[63];  // partial sums by level; sums_[i] is valid if bit i of count_ is set
  int64_t count_ = 0;
};

/// Maximum number of pieces into which an array is split in order to sum it.
inline constexpr int64_t kMostSquaresPieces = 1024;
/// Returns the size of a piece, in floats, if an array of n floats is summed in pieces. The size is `least`,
/// doubled until there are at most kMostSquaresPieces pieces. `least` must be kSquaresGrain times a power of
/// two.
inline int64_t squares_piece(int64_t n, int64_t least) {
  int64_t piece = least;
  while (piece * kMostSquaresPieces < n) piece *= 2;
  return piece;
}

}  // namespace dtrain::math
