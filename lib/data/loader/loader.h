// Decides the order in which samples are read, and reads them before they are needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "data/loader/batch.h"
#include "data/loader/read_seconds.h"

namespace dtrain {

/// Returns the memory that a Loader of this data set would use, assuming that the data set is in memory if
/// `in_memory` is true.
ReadAheadMemory read_ahead_memory(const Dataset& dataset, const LoaderOptions& options, bool in_memory);

/// Iterates over the batches of an epoch. Used by one thread. Batch `step` of epoch `epoch` is a pure
/// function of (seed, epoch, step), whatever the number of threads. The order is a full permutation of the
/// split, new in each epoch (Fisher-Yates with Philox, or order_by_length()), or the file's order. The last
/// batch of an epoch may be smaller. Samples that are in memory and cheap to make are gathered when the batch
/// is read; unless LoaderOptions::prefetch is 0, all other samples are read ahead by a pool of threads,
/// except samples that are not in LoaderOptions::rows, which must not be read. An exception from reading a
/// sample is rethrown by the next() call that would return its batch.
class Loader {
 public:
  /// Throws Error if the system cannot start a thread.
  Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);
  ~Loader();

  int64_t steps_per_epoch() const;
  int64_t samples() const;
  const Dataset& dataset() const;
  /// Returns the lengths of the samples; null if batches have all positions.
  const SampleLengths* lengths() const;
  /// Returns the memory that this Loader uses after begin().
  ReadAheadMemory read_ahead_memory() const;
  /// Returns the time spent by all reader threads so far; zero if samples are not read ahead.
  ReadSeconds read_seconds() const;
  /// Makes the next `next()` return batch `first_step` (from 0) of `epoch` (from 0).
  void begin(int64_t epoch, int64_t first_step);
  /// Returns the next batch, or null at the end of the epoch.
  std::shared_ptr<const Batch> next();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dtrain
