// A batch of samples, and the options for reading batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/view.h"
#include "data/dataset.h"
#include "data/loader/batch_order.h"
#include "data/loader/sample_weights.h"

namespace dtrain {

/// Position of a batch in its data set. The samples of the batch are consecutive in the order of the epoch;
/// the first one has the index `first` in this order.
struct BatchSource {
  const Dataset* dataset = nullptr;  // null if the samples have already been read by another thread
  Samples order;                     // order of all samples of the epoch
  // Identifies the order; different orders of the same Loader have different numbers.
  int64_t order_number = 0;
  int64_t first = 0;
};

/// One global batch. Any thread may copy any part of it. A batch remains valid while the next batch is used:
/// it becomes invalid at the second call of Loader::next() after the call that returned it, and at
/// Loader::begin().
class Batch {
 public:
  virtual ~Batch() = default;
  virtual int64_t size() const = 0;
  /// Copies samples [first, first + count) of the batch into `dst`: one view per column, of shape [count,
  /// ...]. Columns whose view has no data are skipped.
  virtual void read(int64_t first, int64_t count, std::span<const View> dst) const = 0;
  virtual BatchSource source() const { return {}; }
  /// Returns the number of positions to which padded sequences are truncated. Returns 0 if they are not
  /// truncated. The views passed to read() have this number of positions.
  virtual int64_t length() const { return 0; }
  /// Returns the sum of all row weights in the batch for each output. Empty if LoaderOptions::weights is
  /// null.
  virtual std::span<const double> weight_sums() const { return {}; }
};

/// Returns the samples of a batch that this process reads ahead, as ascending ranges of [0, size). `size` is
/// the number of samples of the batch.
using RowsOfBatch = std::function<std::vector<std::pair<int64_t, int64_t>>(int64_t size)>;

struct LoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  uint64_t seed = 0;     // seed for the order and for the sample keys
  int64_t prefetch = 2;  // maximum number of batches that are read ahead
  int threads = 0;       // number of reader threads; 0 for one per core available to this process
  // Returns the rows of a batch that this process reads, if other processes read the remaining rows. Null if
  // this process reads all rows.
  RowsOfBatch rows = nullptr;
  /// If set, each batch is truncated to the length of its longest sample. If the samples are shuffled, the
  /// samples of each batch have similar lengths.
  std::shared_ptr<const SampleLengths> lengths = nullptr;
  std::shared_ptr<const SampleWeights> weights = nullptr;  // row weights for Batch::weight_sums()
};

/// Bytes of host memory needed for reading ahead.
struct ReadAheadMemory {
  size_t for_each_sample = 0;  // bytes for each sample of a batch
  size_t for_threads = 0;      // bytes that do not depend on the batch size

  size_t bytes(int64_t batch_size) const {
    return for_each_sample * static_cast<size_t>(batch_size) + for_threads;
  }
  ReadAheadMemory& operator+=(const ReadAheadMemory& other);
};

}  // namespace dtrain
