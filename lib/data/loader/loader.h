// Decides the order in which samples are read, and reads them before they are needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "data/loader/batch.h"
#include "data/loader/read_seconds.h"

namespace dtrain {

/// Returns the memory that a Loader of this data set would use for reading ahead. `in_memory` says whether to
/// assume that the data set is in memory.
ReadAheadMemory read_ahead_memory(const Dataset& dataset, const LoaderOptions& options, bool in_memory);

/// Iterates over the batches of an epoch. Must be used by one thread only.
/// The content of a batch depends only on the seed, the epoch and the step, not on the number of threads. The
/// order of the samples is either their order in the files, or a new random permutation of the whole split in
/// each epoch (a Fisher-Yates shuffle with Philox, or order_by_length()). The last batch of an epoch may be
/// smaller.
/// Samples that are in memory and cheap to compute are gathered when the batch is read. All other samples are
/// read ahead by a pool of threads, unless LoaderOptions::prefetch is 0. If LoaderOptions::rows is set, only
/// the samples that it returns are read ahead, and the others must not be read.
/// If reading a sample throws an exception, it is rethrown by the call of next() that would return the batch
/// of this sample.
class Loader {
 public:
  /// Throws Error if the system cannot start a thread.
  Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);
  ~Loader();

  int64_t steps_per_epoch() const;
  int64_t samples() const;
  const Dataset& dataset() const;
  /// Returns the lengths of the samples. Returns null if batches are never truncated.
  const SampleLengths* lengths() const;
  /// Returns the memory that this Loader uses for reading ahead. It is allocated by begin().
  ReadAheadMemory read_ahead_memory() const;
  /// Returns the time spent by all reader threads so far; zero if samples are not read ahead.
  ReadSeconds read_seconds() const;
  /// Goes to batch `first_step` (from 0) of `epoch` (from 0). The following call of next() returns this
  /// batch.
  void begin(int64_t epoch, int64_t first_step);
  /// Returns the samples of batch `step` (from 0) of the current epoch, which begin() has set. The result is
  /// valid until the next call of begin().
  Samples samples_of(int64_t step) const;
  /// Returns the next batch, or null at the end of the epoch.
  std::shared_ptr<const Batch> next();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dtrain
