// Samples to read, and the keys from which all their random numbers are drawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/philox.h"

namespace dtrain {

/// Key of one sample in one epoch. Everything random about a sample (its augmentation) is a pure function of
/// this key, so it does not depend on threads, batches, replicas or where a run was resumed.
struct SampleKey {
  uint64_t seed = 0;  // the run's seed
  int64_t epoch = 0;
  int64_t index = 0;  // index of the sample in its split

  /// Returns four random words: draw `number` (0 <= number < 2^32) of `stream`. Each user of random numbers
  /// has a separate stream.
  Philox::Block draw(uint32_t stream, uint32_t number) const {
    return Philox::of(seed, stream)(static_cast<uint64_t>(index),
                                    static_cast<uint64_t>(epoch) << 32 | number);
  }
};

/// Indices of samples of a split, with the seed and the epoch that are also part of each SampleKey. Code that
/// draws no random numbers sets only the indices. Does not own the indices.
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
