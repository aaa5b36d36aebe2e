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

/// Used by one thread; the batches it gives out may be read by any. The threads of the pool take blocks of
/// samples, in the order in which they will be needed: several threads make the next batch together, then the
/// one behind it. Blocks do not depend on the number of threads, so neither does which of several errors is
/// told.
class Prefetcher {
 public:
  /// Up to `options.prefetch` (at least 1) batches are ready before they are asked for. Starts the threads,
  /// as many as the system gives; throws Error where it gives none.
  Prefetcher(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);
  /// Waits for the blocks that are being read.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// What one of this data set takes once begin() was called.
  static ReadAheadMemory memory(const Dataset& dataset, const LoaderOptions& options);

  /// Starts over with batch `first_step` of this order, whose rows stay alive and as they are until the next
  /// begin() or the end. Batches given out before are void.
  void begin(const Samples& order, int64_t first_step);
  /// The next batch, or null after the last. Rethrows what reading it threw (of its first block that failed),
  /// each time it is asked for. A batch is valid until the next but one call.
  std::shared_ptr<const Batch> next();
  /// What the pool's threads have spent so far, all together.
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
  std::vector<std::shared_ptr<Slot>> slots_;  // depth_ that wait, and the two that were given out last

  std::mutex mutex_;
  std::condition_variable to_read_, was_read_;  // for the pool; for the thread that uses this
  Samples order_;
  int64_t steps_ = 0;          // of the epoch
  int64_t taken_ = 0;          // the first step of which not all blocks have been taken
  int64_t taken_samples_ = 0;  // how many samples of that step have been taken
  int64_t given_ = 0;          // the step that next() gives next
  int reading_ = 0;            // threads that read a block now
  ReadSeconds spent_;
  bool stop_ = false;
  std::vector<std::thread> threads_;  // the last member: they use all others
};

}  // namespace dtrain
