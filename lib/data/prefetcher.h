// Reads batches ahead of their use, on a thread of its own.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "data/dataset.h"
#include "data/loader.h"

namespace dtrain {

/// Used by one thread; the batches it gives out may be read by any.
class Prefetcher {
 public:
  /// Up to `depth` (at least 1) batches of up to `batch_size` samples are ready before they are asked for.
  Prefetcher(std::shared_ptr<const Dataset> dataset, int64_t batch_size, int64_t depth);
  /// Waits for the batch that is being read.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Starts over with batch `first_step` of these rows, which stay alive and as they are until the next
  /// begin() or the end. Batches given out before are void.
  void begin(std::span<const int64_t> rows, int64_t first_step);
  /// The next batch, or null after the last. Rethrows what reading it threw, each time it is asked for. A
  /// batch is valid until the next but one call.
  std::shared_ptr<const Batch> next();

 private:
  class Slot;

  void work();
  bool something_to_read() const { return !error_ && read_ < steps_ && read_ - given_ < depth_; }

  std::shared_ptr<const Dataset> dataset_;
  const int64_t batch_size_, depth_;
  std::vector<std::shared_ptr<Slot>> slots_;  // depth_ that wait, and the two that were given out last

  std::mutex mutex_;
  std::condition_variable changed_;
  std::span<const int64_t> rows_;
  int64_t steps_ = 0, read_ = 0, given_ = 0;  // of the epoch: all, read so far, given out so far
  bool reading_ = false, stop_ = false;
  std::exception_ptr error_;  // of batch read_
  std::thread thread_;        // the last member: it uses all others
};

}  // namespace dtrain
