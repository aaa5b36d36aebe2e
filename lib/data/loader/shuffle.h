// Shuffling: the order of the samples in an epoch.
#pragma once

#include <cstdint>
#include <vector>

namespace dtrain {

/// The purpose of a permutation. Permutations for different purposes are independent of each other.
enum class ShuffleOf : uint32_t { samples = 0x73687566, batches = 0x62617463 };

/// Returns a uniformly random permutation of the numbers 0 to size - 1 (a Fisher-Yates shuffle in
/// Durstenfeld's version, with random numbers from Philox). The result depends only on the arguments.
std::vector<int64_t> shuffled_order(int64_t size, uint64_t seed, int64_t epoch,
                                    ShuffleOf what = ShuffleOf::samples);

}  // namespace dtrain
