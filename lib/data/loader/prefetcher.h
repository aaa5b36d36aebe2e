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

/// Reads batches before they are needed. Must be used by one thread only, but any thread may read the
/// returned batches. The tasks of the pool are blocks of samples, in the order in which the samples are
/// needed: several threads first fill the next batch together, then the batch after it. The blocks do not
/// depend on the number of threads. Therefore the reported error is the same for any number of threads.
class Prefetcher {
 public:
  /// Keeps up to `options.prefetch` (at least 1) batches ready. If the system does not allow all threads,
  /// only the allowed ones are started. Throws Error if no thread can be started.
  Prefetcher(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);
  /// Waits for the blocks that are being read. Blocks that have not been started are dropped.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Returns the memory that a Prefetcher of this data set uses. It is allocated by begin().
  static ReadAheadMemory memory(const Dataset& dataset, const LoaderOptions& options);

  /// Starts reading in a new order, beginning with batch `first_step`. The caller must keep the rows of
  /// `order` alive and unchanged until the next call of begin() or the destructor. Batches that were returned
  /// before become invalid.
  void begin(const Samples& order, int64_t first_step);
  /// Returns the next batch, or null after the last batch. If reading the batch failed, each call rethrows
  /// the error of the first failed block of the batch. A batch stays valid until the second call of next()
  /// after the call that returned it.
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
  // Memory for depth_ batches that are read ahead, and for the last two returned batches.
  std::vector<std::shared_ptr<Slot>> slots_;

  Samples order_;
  int64_t steps_ = 0;                 // number of steps in the epoch
  int64_t given_ = 0;                 // step of the batch that next() will return
  std::mutex mutex_;                  // protects spent_ and the progress of the slots that are being filled
  std::condition_variable was_read_;  // wakes the thread in next()
  ReadSeconds spent_;
  ThreadPool pool_;  // must be the last member, because its tasks use all other members
};

}  // namespace dtrain
