// A split: rows of stored columns, each column with a plan that converts it to a column of the model.
#pragma once

#include "data/caches/cache.h"
#include "data/columns/column_plan.h"
#include "data/columns/mix_plan.h"
#include "data/dataset.h"
#include "data/windows/windows.h"

namespace dtrain {

/// The source of a split's samples.
struct DataSource {
  std::string reader;              // options of the reader, as in DataIdentity::reader
  std::vector<std::string> paths;  // paths of the reader's files
  DataFacts facts;                 // facts with which the samples were read
  int64_t from = 0, to = 0;        // the split's range of rows in the files
  /// The rows of [from, to) that are in the split, and how they were drawn; both are empty if all rows are.
  std::vector<int64_t> rows = {};
  std::string drawn = {};
  FileListing named = {};  // files that the files at `paths` list, such as images
  /// Set if samples are windows of the rows [from, to); `rows` is then empty. Null if a sample is one row.
  std::shared_ptr<const Windows> windows = nullptr;

  int64_t size() const {
    return windows ? windows->size() : rows.empty() ? to - from : static_cast<int64_t>(rows.size());
  }
  /// Returns the row that identifies a sample.
  int64_t row(int64_t sample) const {
    return windows ? windows->row(sample) : rows.empty() ? from + sample : rows[static_cast<size_t>(sample)];
  }
  /// Returns the rows on which transforms are fitted; empty for all of [from, to).
  const std::vector<int64_t>& rows_to_fit() const { return windows ? windows->members : rows; }
};

class SplitDataset final : public Dataset {
 public:
  /// Reads the source's rows of `held` with one plan per column. If `columns` are given, they replace the
  /// columns of `held` and must have as many rows. If samples are windows, plans convert single rows.
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
  /// Returns false for random columns, because they change in every epoch and a device cannot keep them.
  bool on_device() const override { return held_->on_device && !is_random_; }
  bool in_memory() const override { return in_memory_; }
  bool is_costly() const override { return is_costly_; }
  size_t working_bytes(int64_t samples) const override;
  bool lies_in_memory() const override;

 private:
  /// Like read_column(), but without blending samples.
  void read_unmixed(size_t index, const Samples& samples, void* dst) const;
  /// Returns the number of rows that a sample has in a column.
  int64_t rows_in(size_t index) const { return source_.windows ? source_.windows->rows_in(index) : 1; }
  /// Returns the rows of the samples in a column, counted from DataSource::from, in `storage` if samples are
  /// windows.
  std::span<const int64_t> rows_of(size_t index, std::span<const int64_t> samples,
                                   std::vector<int64_t>& storage) const;
  void mix(size_t index, const Samples& samples, float* dst) const;
  /// Returns the address of the source's row DataSource::from if the column is contiguous in memory; else
  /// null.
  const std::byte* data_of(const Column& column) const;
  /// Reads rows in the column's stored form.
  void read_stored_rows(const Column& column, std::span<const int64_t> rows, void* dst) const;

  std::shared_ptr<const CachedColumns> held_;
  Columns columns_;
  std::vector<ColumnPlan> plans_;
  std::vector<TensorSpec> specs_;
  DataSource source_;
  MixPlan mix_;
  int64_t first_;  // index of the source's row DataSource::from in the held columns
  bool in_memory_, is_random_, is_costly_;
};

}  // namespace dtrain
