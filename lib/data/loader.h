// The order in which samples are met, and their reading ahead of use.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/view.h"
#include "data/dataset.h"

namespace dtrain {

/// Where a batch's samples are in their data set: rows order[first], order[first + 1], ... of it.
struct BatchSource {
  const Dataset* dataset = nullptr;  // null: the samples have been read already, by another thread
  std::span<const int64_t> order;    // of the whole epoch
  int64_t epoch = 0;
  int64_t first = 0;
};

/// One global batch. Any thread may copy any part of it; valid until the Loader's next but one `next()` or
/// its `begin()`.
class Batch {
 public:
  virtual ~Batch() = default;
  virtual int64_t size() const = 0;
  /// Copies samples [first, first + count) of the batch into `dst`, one view a column, of shape [count, ...].
  virtual void read(int64_t first, int64_t count, std::span<const View> dst) const = 0;
  virtual BatchSource source() const { return {}; }
};

/// Used by one thread. Batch `step` of epoch `epoch` is a pure function of (seed, epoch, step): a full
/// permutation of the split, new each epoch (Fisher-Yates on Philox), or the file's order. The last batch of
/// an epoch may be smaller. Data that is in memory is gathered by whoever reads the batch; all other data is
/// read ahead by `prefetch` batches on a thread of the Loader's own, whose exceptions come out of next().
class Loader {
 public:
  Loader(std::shared_ptr<const Dataset> dataset, int64_t batch_size, bool shuffle, uint64_t seed,
         int64_t prefetch);
  ~Loader();

  int64_t steps_per_epoch() const;
  int64_t samples() const;
  const Dataset& dataset() const;
  /// The next `next()` gives batch `first_step` (from 0) of `epoch` (from 0).
  void begin(int64_t epoch, int64_t first_step);
  /// Null at the end of the epoch.
  std::shared_ptr<const Batch> next();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dtrain
