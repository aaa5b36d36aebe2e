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

/// Position of a batch in its data set: the batch starts with sample `first` of the epoch's order.
struct BatchSource {
  const Dataset* dataset = nullptr;  // null if another thread has read the samples already
  Samples order;                     // order of the whole epoch
  int64_t order_number = 0;  // identifies the order: different orders of one Loader have different numbers
  int64_t first = 0;
};

/// One global batch. Any thread may copy any part of it. It stays valid until the second-next call of
/// Loader::next(), or until Loader::begin().
class Batch {
 public:
  virtual ~Batch() = default;
  virtual int64_t size() const = 0;
  /// Copies samples [first, first + count) of the batch into `dst`: one view per column, of shape [count,
  /// ...]. Columns whose view has no data are skipped.
  virtual void read(int64_t first, int64_t count, std::span<const View> dst) const = 0;
  virtual BatchSource source() const { return {}; }
  /// Returns the number of positions to which padded sequences are cut; 0 if they are not cut. The views
  /// passed to read() have this number of positions.
  virtual int64_t length() const { return 0; }
  /// Returns the sum of the row weights of all samples for each output; empty without LoaderOptions::weights.
  virtual std::span<const double> weight_sums() const { return {}; }
};

/// Returns the samples of a batch that are read ahead: ranges of [0, size), in order.
using RowsOfBatch = std::function<std::vector<std::pair<int64_t, int64_t>>(int64_t size)>;

struct LoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  uint64_t seed = 0;     // seed for the order and for the sample keys
  int64_t prefetch = 2;  // maximum number of batches read ahead
  int threads = 0;       // number of reader threads; 0 for one per core available to this process
  // The rows of a batch that this process reads, if other processes read the rest; null if it reads all rows.
  RowsOfBatch rows = nullptr;
  /// If set, each batch is cut to its longest sample, and shuffled batches contain samples of similar
  /// lengths.
  std::shared_ptr<const SampleLengths> lengths = nullptr;
  std::shared_ptr<const SampleWeights> weights = nullptr;  // row weights for Batch::weight_sums()
};

/// Bytes of host memory needed for reading ahead.
struct ReadAheadMemory {
  size_t for_each_sample = 0;  // bytes per sample of a batch
  size_t for_threads = 0;      // bytes that do not depend on the batch size

  size_t bytes(int64_t batch_size) const {
    return for_each_sample * static_cast<size_t>(batch_size) + for_threads;
  }
  ReadAheadMemory& operator+=(const ReadAheadMemory& other);
};

}  // namespace dtrain
