// A split is a range of rows of stored columns, each with a plan that makes of it what the model wants.
#pragma once

#include "data/caches/cache.h"
#include "data/columns/column_plan.h"
#include "data/columns/mix_plan.h"
#include "data/dataset.h"

namespace dtrain {

/// Where a split's samples come from.
struct DataSource {
  std::string reader;              // as DataIdentity::reader
  std::vector<std::string> paths;  // of the reader's files
  DataFacts facts;                 // that the samples were read by
  int64_t from = 0, to = 0;        // the split's rows among those that the files hold
  /// Where only some of [from, to) are the split's: these, and how they were drawn.
  std::vector<int64_t> rows = {};
  std::string drawn = {};
  FileListing named = {};  // the files that those at `paths` name

  int64_t row(int64_t sample) const {
    return rows.empty() ? from + sample : rows[static_cast<size_t>(sample)];
  }
};

class SplitDataset final : public Dataset {
 public:
  /// The source's rows of what is held, with a plan for each column: those that are held, or else `columns`,
  /// which have as many rows.
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
  /// Random columns are made anew every epoch, so a device has nothing to keep.
  bool on_device() const override { return held_->on_device && !is_random_; }
  bool in_memory() const override { return in_memory_; }
  bool is_costly() const override { return is_costly_; }
  size_t working_bytes(int64_t samples) const override;
  bool lies_in_memory() const override;

 private:
  /// As read_column(), before samples are blended.
  void read_unmixed(size_t index, const Samples& samples, void* dst) const;
  void mix(size_t index, const Samples& samples, float* dst) const;
  /// The source's row DataSource::from, where the column's rows lie one after the other; else null.
  const std::byte* data_of(const Column& column) const;
  /// The samples' rows, counted from there; in `storage` where they are not the samples' own numbers.
  std::span<const int64_t> places_of(std::span<const int64_t> samples, std::vector<int64_t>& storage) const;

  std::shared_ptr<const CachedColumns> held_;
  Columns columns_;
  std::vector<ColumnPlan> plans_;
  std::vector<TensorSpec> specs_;
  DataSource source_;
  MixPlan mix_;
  int64_t first_;  // the place of the source's row DataSource::from in the held columns
  bool in_memory_, is_random_, is_costly_;
};

}  // namespace dtrain
