// Adds up the sums of squares of arrays that are divided among ranks. The result is bit-identical for any
// division (ops/math/pairwise.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collective/collective.h"

namespace dtrain {

/// A node of an array's summation tree: 2^level grains of the array, or fewer at its end.
struct PairwiseTerm {
  int64_t array = 0;  // index of the array
  int64_t first = 0;  // index of the first grain in the array
  int level = 0;
  Range values;  // the floats to sum, as indices into the caller's values
};

/// Returns the number of grains in `floats` floats.
int64_t grains_of(int64_t floats);

/// Appends the fewest terms that cover `values`, which begin at grain `first` of an array of `grains` grains.
void add_terms(std::vector<PairwiseTerm>& terms, int64_t array, Range values, int64_t first, int64_t grains);

/// Returns an upper bound of the number of terms for any part of an array of `grains` grains.
size_t most_terms(int64_t grains);

/// Returns the sums of all arrays. sums[i] is the sum of terms[i]; each grain of each array must be in the
/// terms of exactly one rank. `most`: upper bound of the terms per rank, the same on all ranks.
std::vector<double> sum_over_members(Collective& everyone, std::span<const PairwiseTerm> terms,
                                     std::span<const double> sums, size_t most, size_t arrays);

}  // namespace dtrain
