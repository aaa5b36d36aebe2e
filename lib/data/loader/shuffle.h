// Shuffling: the order of the samples in an epoch.
#pragma once

#include <cstdint>
#include <vector>

namespace dtrain {

/// Returns a uniformly random permutation of 0 .. size - 1: a Fisher-Yates shuffle (Durstenfeld's version)
/// with random numbers from Philox. A pure function of its arguments.
std::vector<int64_t> shuffled_order(int64_t size, uint64_t seed, int64_t epoch);

}  // namespace dtrain
