// Sums of squares over members, of arrays that are cut anywhere: no cut changes a bit (ops/math/pairwise.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collective/collective.h"

namespace dtrain {

/// A node of an array's tree of sums: 2^level grains of the array, fewer at its end.
struct PairwiseTerm {
  int64_t array = 0;  // which one
  int64_t first = 0;  // grain of the array
  int level = 0;
  Range values;  // the floats that are summed, where the caller has them
};

/// The grains of so many floats.
int64_t grains_of(int64_t floats);

/// Appends the fewest terms that make up `values`, which are the floats from grain `first` on of an array of
/// `grains`.
void add_terms(std::vector<PairwiseTerm>& terms, int64_t array, Range values, int64_t first, int64_t grains);

/// How many terms a part of an array of so many grains has at most.
size_t most_terms(int64_t grains);

/// The sums of all arrays. sums[i] is that of terms[i]; each grain of each array is in one member's terms. A
/// member has at most `most` terms, a number that all pass alike.
std::vector<double> sum_over_members(Collective& everyone, std::span<const PairwiseTerm> terms,
                                     std::span<const double> sums, size_t most, size_t arrays);

}  // namespace dtrain
