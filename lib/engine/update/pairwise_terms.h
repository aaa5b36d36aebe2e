// Sums the squares of arrays that are divided among ranks. The result is bit-identical for any division
// (ops/math/pairwise.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collective/collective.h"

namespace dtrain {

/// A node of the tree in which the squares of an array are summed. The node contains 2^level grains of the
/// array, or fewer at the end of the array. A grain is a block of floats (ops/math/pairwise.h).
struct PairwiseTerm {
  int64_t array = 0;  // index of the array
  int64_t first = 0;  // index of the first grain in the array
  int level = 0;
  Range values;  // the floats to sum, as indices into the caller's values
};

/// Returns the number of grains in `floats` floats.
int64_t grains_of(int64_t floats);

/// Appends the fewest terms that cover `values`. `array`: index of the array that contains the values.
/// `first`: index of the grain with which the values begin. `grains`: number of grains in the array.
void add_terms(std::vector<PairwiseTerm>& terms, int64_t array, Range values, int64_t first, int64_t grains);

/// Returns an upper bound of the number of terms that cover a part of an array of `grains` grains.
size_t most_terms(int64_t grains);

/// Returns the sum of squares of each array, over all ranks. `sums`: the sum of each of this rank's `terms`.
/// Each grain of each array must be in a term of exactly one rank. `most`: upper bound of the number of terms
/// per rank, the same on all ranks. `arrays`: number of arrays.
std::vector<double> sum_over_members(Collective& everyone, std::span<const PairwiseTerm> terms,
                                     std::span<const double> sums, size_t most, size_t arrays);

}  // namespace dtrain
