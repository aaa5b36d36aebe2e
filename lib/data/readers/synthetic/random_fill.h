// Fills arrays with random numbers. Each number depends only on the key, the row and the index of the
// element.
#pragma once

#include <cstdint>

#include "base/philox.h"

namespace dtrain {

/// Elements are computed in groups of 64: word w of Philox's block (row, 16 * group + j) is element 64 *
/// group + 16 * w + j. With this numbering, the 16 blocks of a group can be computed in SIMD lanes, because
/// word w of all 16 blocks gives 16 consecutive elements.
constexpr int64_t kRandomGroup = 64;

/// Fills `count` elements of one row with low + (high - low) u, for u uniform in [0, 1) with 24 bits.
void fill_uniform(Philox random, int64_t row, float low, float high, float* dst, int64_t count);
/// Fills `count` elements of one row with uniformly distributed integers in [low, low + range).
void fill_integers(Philox random, int64_t row, int32_t low, uint32_t range, int32_t* dst, int64_t count);
/// Fills `count` elements of one row with normally distributed numbers (Box and Muller 1958, on pairs of
/// elements 32 apart within a group).
void fill_normal(Philox random, int64_t row, float mean, float stddev, float* dst, int64_t count);

}  // namespace dtrain
