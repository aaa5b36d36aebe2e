// A split: rows of stored columns, each column with a plan that converts it to a column of the model.
#pragma once

#include "data/caches/cache.h"
#include "data/columns/column_plan.h"
#include "data/columns/mix_plan.h"
#include "data/dataset.h"

namespace dtrain {

/// Where a split's samples come from.
struct DataSource {
  std::string reader;              // as DataIdentity::reader
  std::vector<std::string> paths;  // paths of the reader's files
  DataFacts facts;                 // facts with which the samples were read
  int64_t from = 0, to = 0;        // the split's range of rows in the files
  /// If only some rows of [from, to) are in the split: these rows, and how they were drawn.
  std::vector<int64_t> rows = {};
  std::string drawn = {};
  FileListing named = {};  // the files that the files at `paths` list

  int64_t row(int64_t sample) const {
    return rows.empty() ? from + sample : rows[static_cast<size_t>(sample)];
  }
};

class SplitDataset final : public Dataset {
 public:
  /// Reads the source's rows of `held` with one plan per column. The columns are those of `held`, or
  /// `columns` if given, which must have as many rows.
  SplitDataset(std::shared_ptr<const CachedColumns> held, std::vector<ColumnPlan> plans, DataSource source,
               MixPlan mix = {}, Columns columns = {});

  int64_t size() const override {
    return source_.rows.empty() ? source_.to - source_.from : static_cast<int64_t>(source_.rows.size());
  }
  const std::vector<TensorSpec>& columns() const override { return specs_; }
  void read(const Samples& samples, std::span<const View> dst) const override;
  void read_column(size_t index, const Samples& samples, void* dst) const override;
  std::optional<StoredForm> stored_form(size_t index) const override;
  void read_stored(size_t index, std::span<const int64_t> rows, void* dst) const override;
  DataIdentity identity() const override;
  std::vector<int64_t> rows_in_files() const override;
  DataFacts facts() const override { return source_.facts; }
  bool has_ids() const override { return held_->names != nullptr; }
  std::string id_title() const override { return has_ids() ? held_->names->spec().name : "row"; }
  std::vector<std::string> warnings() const override { return held_->warnings; }
  std::string sample_id(int64_t index) const override;
  /// Random columns change in every epoch, so a device has nothing to keep.
  bool on_device() const override { return held_->on_device && !is_random_; }
  bool in_memory() const override { return in_memory_; }
  bool is_costly() const override { return is_costly_; }
  size_t working_bytes(int64_t samples) const override;
  bool lies_in_memory() const override;

 private:
  /// Like read_column(), but without blending samples.
  void read_unmixed(size_t index, const Samples& samples, void* dst) const;
  void mix(size_t index, const Samples& samples, float* dst) const;
  /// Returns the address of the source's row DataSource::from if the column is contiguous in memory; else
  /// null.
  const std::byte* data_of(const Column& column) const;
  /// Returns the samples' rows relative to DataSource::from, in `storage` if they differ from the sample
  /// numbers.
  std::span<const int64_t> places_of(std::span<const int64_t> samples, std::vector<int64_t>& storage) const;

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
