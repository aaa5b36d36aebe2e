// Which samples are read, and what everything random about them is drawn from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/philox.h"

namespace dtrain {

/// The key of one sample in one epoch. Whatever is random about a sample (its augmentation) is a pure
/// function of this key, so it does not depend on threads, batches, replicas, or where a run was resumed.
struct SampleKey {
  uint64_t seed = 0;  // the run's
  int64_t epoch = 0;
  int64_t index = 0;  // of the sample, in its split

  /// Four random words: the `number`-th draw (from 0, below 2^32) of whoever owns this `stream`.
  Philox::Block draw(uint32_t stream, uint32_t number) const {
    return Philox::of(seed, stream)(static_cast<uint64_t>(index),
                                    static_cast<uint64_t>(epoch) << 32 | number);
  }
};

/// Samples of a split by their indices, with the seed and the epoch that complete their keys. Readers that
/// have nothing random to draw give the indices only. Does not own the indices.
struct Samples {
  std::span<const int64_t> rows;  // each index is in [0, size of the split)
  uint64_t seed = 0;
  int64_t epoch = 0;

  size_t size() const { return rows.size(); }
  SampleKey key(size_t i) const { return {seed, epoch, rows[i]}; }
  /// The samples [first, first + count) of these.
  Samples part(size_t first, size_t count) const { return {rows.subspan(first, count), seed, epoch}; }
};

}  // namespace dtrain
