// Reads batches before they are needed, on a pool of threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "base/thread_pool.h"
#include "data/loader/batch.h"
#include "data/loader/read_seconds.h"

namespace dtrain {

/// Reads batches before they are needed. Used by one thread; any thread may read the batches that it returns.
/// The pool's tasks are blocks of samples in the order in which they are needed: several threads fill the
/// next batch together, then the batch after it. Blocks do not depend on the number of threads, so the error
/// that is reported does not either.
class Prefetcher {
 public:
  /// Keeps up to `options.prefetch` (at least 1) batches ready. Starts the threads, or as many as the system
  /// allows; throws Error if it allows none.
  Prefetcher(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);
  /// Waits for the blocks that are being read; drops those that have not been started.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Returns the memory that a Prefetcher of this data set uses after begin().
  static ReadAheadMemory memory(const Dataset& dataset, const LoaderOptions& options);

  /// Starts over with batch `first_step` of this order. The caller keeps the order's rows alive and unchanged
  /// until the next begin() or the destructor. Batches returned before become invalid.
  void begin(const Samples& order, int64_t first_step);
  /// Returns the next batch, or null after the last. If reading failed, rethrows the error of the batch's
  /// first failed block, on each call. A batch stays valid until the second-next call.
  std::shared_ptr<const Batch> next();
  /// Returns the time spent by all threads of the pool so far.
  ReadSeconds read_seconds();

 private:
  class Slot;

  void read_ahead(int64_t step);
  void read_block(Slot& slot, int64_t first, const Samples& samples);

  const std::shared_ptr<const Dataset> dataset_;
  const int64_t batch_size_, depth_, block_size_;
  const RowsOfBatch rows_;
  std::vector<std::shared_ptr<Slot>> slots_;  // depth_ batches that wait, and the two returned last

  Samples order_;
  int64_t steps_ = 0;                 // number of steps in the epoch
  int64_t given_ = 0;                 // step that next() returns next
  std::mutex mutex_;                  // protects spent_ and the progress of slots that are being read
  std::condition_variable was_read_;  // wakes the thread in next()
  ReadSeconds spent_;
  ThreadPool pool_;  // the last member, because its tasks use all others
};

}  // namespace dtrain
