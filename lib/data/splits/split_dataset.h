// A split of a data set. It consists of rows of stored columns. Each column has a plan that converts it to a
// column of the model.
#pragma once

#include "data/caches/cache.h"
#include "data/columns/column_plan.h"
#include "data/columns/mix_plan.h"
#include "data/dataset.h"
#include "data/windows/windows.h"

namespace dtrain {

/// The files and rows from which the samples of a split are read.
struct DataSource {
  std::string reader;              // options of the reader (see DataIdentity::reader)
  std::vector<std::string> paths;  // paths of the reader's files
  DataFacts facts;                 // facts that were used to read the samples
  int64_t from = 0, to = 0;        // the split's range of rows in the files
  /// The rows of [from, to) that belong to the split, and a description of how they were drawn. Both are
  /// empty if all rows belong to the split.
  std::vector<int64_t> rows = {};
  std::string drawn = {};
  FileListing named = {};  // files whose names are listed in the files at `paths`, such as images
  /// Windows over the rows [from, to), if the samples are windows; `rows` is then empty. Null if each sample
  /// is one row.
  std::shared_ptr<const Windows> windows = nullptr;

  int64_t size() const {
    return windows ? windows->size() : rows.empty() ? to - from : static_cast<int64_t>(rows.size());
  }
  /// Returns the row number that identifies a sample.
  int64_t row(int64_t sample) const {
    return windows ? windows->row(sample) : rows.empty() ? from + sample : rows[static_cast<size_t>(sample)];
  }
  /// Returns the rows on which transforms are fitted. If the result is empty, transforms are fitted on all
  /// rows [from, to).
  const std::vector<int64_t>& rows_to_fit() const { return windows ? windows->members : rows; }
};

class SplitDataset final : public Dataset {
 public:
  /// Reads the rows of `source` from `held`. There is one plan per column. If `columns` is not empty, it
  /// replaces the columns of `held` and must have the same number of rows. If the samples are windows, the
  /// plans convert single rows.
  SplitDataset(std::shared_ptr<const CachedColumns> held, std::vector<ColumnPlan> plans, DataSource source,
               MixPlan mix = {}, Columns columns = {});

  int64_t size() const override { return source_.size(); }
  const std::vector<TensorSpec>& columns() const override { return specs_; }
  void read(const Samples& samples, std::span<const View> dst) const override;
  void read_column(size_t index, const Samples& samples, void* dst) const override;
  std::optional<StoredForm> stored_form(size_t index) const override;
  void read_stored(size_t index, std::span<const int64_t> samples, void* dst) const override;
  DataIdentity identity() const override;
  std::vector<int64_t> rows_in_files() const override;
  DataFacts facts() const override { return source_.facts; }
  bool has_ids() const override;
  std::string id_title() const override;
  std::vector<std::string> warnings() const override;
  std::string sample_id(int64_t index) const override;
  int64_t forecast_steps() const override;
  /// Returns false if the columns are random: they change in every epoch, so a device cannot keep them.
  bool on_device() const override { return held_->on_device && !is_random_; }
  bool in_memory() const override { return in_memory_; }
  bool is_costly() const override { return is_costly_; }
  size_t working_bytes(int64_t samples) const override;
  bool lies_in_memory() const override;

 private:
  /// Like read_column(), but does not blend samples (MixPlan).
  void read_unmixed(size_t index, const Samples& samples, void* dst) const;
  /// Returns the number of rows of a column that belong to one sample.
  int64_t rows_in(size_t index) const { return source_.windows ? source_.windows->rows_in(index) : 1; }
  /// Returns the rows of the given samples in a column, counted from DataSource::from. The result may refer
  /// to `samples` or to `storage`, which must live as long as the result.
  std::span<const int64_t> rows_of(size_t index, std::span<const int64_t> samples,
                                   std::vector<int64_t>& storage) const;
  void mix(size_t index, const Samples& samples, float* dst) const;
  /// Returns the address of the row DataSource::from of a column. Returns null if the column is not
  /// contiguous in memory.
  const std::byte* data_of(const Column& column) const;
  /// Reads rows of a column in their stored form.
  void read_stored_rows(const Column& column, std::span<const int64_t> rows, void* dst) const;

  std::shared_ptr<const CachedColumns> held_;
  Columns columns_;
  std::vector<ColumnPlan> plans_;
  std::vector<TensorSpec> specs_;
  DataSource source_;
  MixPlan mix_;
  int64_t first_;  // index of the row DataSource::from in the held columns
  bool in_memory_, is_random_, is_costly_;
};

}  // namespace dtrain
