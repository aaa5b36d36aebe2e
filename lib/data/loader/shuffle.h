// Shuffling: the order of the samples in an epoch.
#pragma once

#include <cstdint>
#include <vector>

namespace dtrain {

/// A uniformly random permutation of 0 .. size - 1, a pure function of its arguments: Fisher and Yates's
/// shuffle (in Durstenfeld's form) with Philox's numbers.
std::vector<int64_t> shuffled_order(int64_t size, uint64_t seed, int64_t epoch);

}  // namespace dtrain
