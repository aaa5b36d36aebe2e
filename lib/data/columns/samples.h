// Samples to read, and their keys. All random numbers of a sample are drawn from its key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/philox.h"

namespace dtrain {

/// Key of one sample in one epoch. All random changes of a sample (its augmentation) are a function of this
/// key only. They therefore do not depend on threads, batches or replicas, or on the step at which a run was
/// resumed.
struct SampleKey {
  uint64_t seed = 0;  // the run's seed
  int64_t epoch = 0;
  int64_t index = 0;  // index of the sample in its split

  /// Returns four random words. `stream` selects one of many independent sequences; each user of random
  /// numbers has its own stream. `number` is the index of the draw in the sequence (0 <= number < 2^32).
  Philox::Block draw(uint32_t stream, uint32_t number) const {
    return Philox::of(seed, stream)(static_cast<uint64_t>(index),
                                    static_cast<uint64_t>(epoch) << 32 | number);
  }
};

/// Indices of samples of a split, together with the seed and the epoch of their keys. Code that draws no
/// random numbers sets only the indices. Does not own the indices.
struct Samples {
  std::span<const int64_t> rows;  // each index is in [0, size of the split)
  uint64_t seed = 0;
  int64_t epoch = 0;

  size_t size() const { return rows.size(); }
  SampleKey key(size_t i) const { return {seed, epoch, rows[i]}; }
  /// Returns the samples [first, first + count).
  Samples part(size_t first, size_t count) const { return {rows.subspan(first, count), seed, epoch}; }
};

}  // namespace dtrain
