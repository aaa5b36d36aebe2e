// Reads batches ahead of their use, on a pool of threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "data/loader/batch.h"
#include "data/loader/read_seconds.h"

namespace dtrain {

/// Used by one thread; any thread may read the batches that it returns. The threads of the pool take blocks
/// of samples in the order in which they are needed: several threads fill the next batch together, then the
/// batch after it. Blocks do not depend on the number of threads, so the error that is reported does not
/// either.
class Prefetcher {
 public:
  /// Keeps up to `options.prefetch` (at least 1) batches ready. Starts the threads, or as many as the system
  /// allows; throws Error if it allows none.
  Prefetcher(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);
  /// Waits for the blocks that are being read.
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
  struct Block;

  bool start_another();
  void work();
  bool something_to_read() const { return taken_ < steps_ && taken_ - given_ < depth_; }
  Block take_block();
  Slot& slot_of(int64_t step) { return *slots_[static_cast<size_t>(step) % slots_.size()]; }

  const std::shared_ptr<const Dataset> dataset_;
  const int64_t batch_size_, depth_, block_size_;
  std::vector<std::shared_ptr<Slot>> slots_;  // depth_ batches that wait, and the two returned last

  std::mutex mutex_;
  std::condition_variable to_read_, was_read_;  // wake the pool; wake the thread in next() or begin()
  Samples order_;
  int64_t steps_ = 0;          // of the epoch
  int64_t taken_ = 0;          // first step with blocks not taken yet
  int64_t taken_samples_ = 0;  // samples of that step taken so far
  int64_t given_ = 0;          // step that next() returns next
  int reading_ = 0;            // threads that are reading a block
  ReadSeconds spent_;
  bool stop_ = false;
  std::vector<std::thread> threads_;  // the last member: they use all others
};

}  // namespace dtrain
