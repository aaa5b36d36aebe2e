// Samples that are trained on together, and how they are to be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/view.h"
#include "data/dataset.h"

namespace dtrain {

/// Where a batch's samples are in their data set: the batch begins with sample `first` of the epoch's order.
struct BatchSource {
  const Dataset* dataset = nullptr;  // null: the samples have been read already, by other threads
  Samples order;                     // of the whole epoch
  int64_t order_number = 0;          // orders of one Loader that differ have different numbers
  int64_t first = 0;
};

/// One global batch. Any thread may copy any part of it; valid until the Loader's next but one `next()` or
/// its `begin()`.
class Batch {
 public:
  virtual ~Batch() = default;
  virtual int64_t size() const = 0;
  /// Copies samples [first, first + count) of the batch into `dst`, one view a column, of shape [count, ...].
  /// A view without data is of a column that is not wanted.
  virtual void read(int64_t first, int64_t count, std::span<const View> dst) const = 0;
  virtual BatchSource source() const { return {}; }
};

struct LoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  uint64_t seed = 0;     // of the order, and of the samples' keys
  int64_t prefetch = 2;  // batches that are read ahead at most
  int threads = 0;       // that read ahead; 0: as many as there are cores for this process
};

/// The host's memory that reading ahead takes, in bytes.
struct ReadAheadMemory {
  size_t for_each_sample = 0;  // of a batch
  size_t for_threads = 0;      // whatever the batch

  size_t bytes(int64_t batch_size) const {
    return for_each_sample * static_cast<size_t>(batch_size) + for_threads;
  }
  ReadAheadMemory& operator+=(const ReadAheadMemory& other);
};

}  // namespace dtrain
