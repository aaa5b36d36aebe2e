// A split as the loader sees it: a range of rows of stored columns, through their plans.
#pragma once

#include "data/cache.h"
#include "data/column_plan.h"
#include "data/dataset.h"

namespace dtrain {

class SplitDataset final : public Dataset {
 public:
  /// Rows [from, from + size) of what is held (of `held->columns`, that is); a plan for each column.
  SplitDataset(std::shared_ptr<const CachedColumns> held, std::vector<ColumnPlan> plans, int64_t from,
               int64_t size);

  int64_t size() const override { return size_; }
  const std::vector<TensorSpec>& columns() const override { return specs_; }
  void read(std::span<const int64_t> rows, std::span<const View> dst) const override;
  void read_column(size_t index, std::span<const int64_t> rows, void* dst) const override;
  std::optional<StoredForm> stored_form(size_t index) const override;
  void read_stored(size_t index, std::span<const int64_t> rows, void* dst) const override;
  bool on_device() const override { return held_->on_device; }
  bool in_memory() const override { return in_memory_; }

 private:
  /// Row 0 of the split, where the column's rows lie one after the other.
  const std::byte* data_of(const Column& column) const;

  std::shared_ptr<const CachedColumns> held_;
  std::vector<ColumnPlan> plans_;
  std::vector<TensorSpec> specs_;
  int64_t from_, size_;
  bool in_memory_;
};

}  // namespace dtrain
