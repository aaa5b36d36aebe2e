// The order in which samples are read, and reading them ahead of use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "data/loader/batch.h"
#include "data/loader/read_seconds.h"

namespace dtrain {

/// What a Loader of this data set would take. `in_memory`: as if the data set were in memory.
ReadAheadMemory read_ahead_memory(const Dataset& dataset, const LoaderOptions& options, bool in_memory);

/// Used by one thread. Batch `step` of epoch `epoch` is a pure function of (seed, epoch, step), whatever the
/// number of threads: a full permutation of the split, new each epoch (Fisher-Yates on Philox), or the file's
/// order. The last batch of an epoch may be smaller. Samples that are in memory and cost next to nothing to
/// make are gathered by whoever reads the batch; all others are read ahead by a pool of threads. What reading
/// a sample throws comes out of the next() that would give its batch.
class Loader {
 public:
  /// Throws Error where the system gives no thread.
  Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);
  ~Loader();

  int64_t steps_per_epoch() const;
  int64_t samples() const;
  const Dataset& dataset() const;
  /// The memory that this Loader takes once begin() was called.
  ReadAheadMemory read_ahead_memory() const;
  /// What its threads have spent so far, all together: nothing where samples are not read ahead.
  ReadSeconds read_seconds() const;
  /// The next `next()` gives batch `first_step` (from 0) of `epoch` (from 0).
  void begin(int64_t epoch, int64_t first_step);
  /// Null at the end of the epoch.
  std::shared_ptr<const Batch> next();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dtrain
