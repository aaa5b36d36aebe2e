// A split as the loader sees it: a range of rows of stored columns, through their plans.
#pragma once

#include "data/cache.h"
#include "data/column_plan.h"
#include "data/dataset.h"

namespace dtrain {

/// Where a split's samples come from.
struct DataSource {
  std::string reader;              // as DataIdentity's
  std::vector<std::string> paths;  // of its files
  FieldNames fields;
  int64_t from = 0, to = 0;  // the rows of what the files hold
};

class SplitDataset final : public Dataset {
 public:
  /// The source's rows of what is held; a plan for each column.
  SplitDataset(std::shared_ptr<const CachedColumns> held, std::vector<ColumnPlan> plans, DataSource source);

  int64_t size() const override { return source_.to - source_.from; }
  const std::vector<TensorSpec>& columns() const override { return specs_; }
  void read(std::span<const int64_t> rows, std::span<const View> dst) const override;
  void read_column(size_t index, std::span<const int64_t> rows, void* dst) const override;
  std::optional<StoredForm> stored_form(size_t index) const override;
  void read_stored(size_t index, std::span<const int64_t> rows, void* dst) const override;
  DataIdentity identity() const override;
  bool on_device() const override { return held_->on_device; }
  bool in_memory() const override { return in_memory_; }
  bool lies_in_memory() const override;

 private:
  /// Row 0 of the split, where the column's rows lie one after the other.
  const std::byte* data_of(const Column& column) const;

  std::shared_ptr<const CachedColumns> held_;
  std::vector<ColumnPlan> plans_;
  std::vector<TensorSpec> specs_;
  DataSource source_;
  int64_t first_;  // of the split's rows, in the held columns
  bool in_memory_;
};

}  // namespace dtrain
