#include "data/split_dataset.h"

#include <algorithm>
#include <stdexcept>

namespace dtrain {

SplitDataset::SplitDataset(std::shared_ptr<const CachedColumns> held, std::vector<ColumnPlan> plans,
                           int64_t from, int64_t size)
    : held_(std::move(held)), plans_(std::move(plans)), from_(from), size_(size) {
  for (const ColumnPlan& plan : plans_) specs_.push_back(plan.spec());
  in_memory_ = std::all_of(held_->columns.begin(), held_->columns.end(),
                           [](const auto& column) { return column->in_memory(); });
}

void SplitDataset::read(std::span<const int64_t> rows, std::span<const View> dst) const {
  if (dst.size() != plans_.size()) throw std::logic_error("a view for each column is wanted");
  for (size_t i = 0; i < dst.size(); ++i) {
    const auto expected = static_cast<int64_t>(rows.size()) * specs_[i].shape.elements();
    if (dst[i].dtype != specs_[i].dtype || dst[i].elements() != expected)
      throw std::logic_error("column '" + specs_[i].name + "' is read into a view of another type or size");
    read_column(i, rows, dst[i].data);
  }
}

void SplitDataset::read_column(size_t index, std::span<const int64_t> rows, void* dst) const {
  const Column& column = *held_->columns[index];
  const ColumnPlan& plan = plans_[index];
  if (column.data())
    return plan.run(column.data() + static_cast<size_t>(from_) * column.row_bytes(), rows, dst);
  std::vector<int64_t> stored(rows.begin(), rows.end());
  for (int64_t& row : stored) row += from_;
  if (plan.is_copy()) return column.read(stored, dst);
  const auto raw = allocate_bytes(rows.size() * column.row_bytes());
  column.read(stored, raw.get());
  plan.run(raw.get(), row_numbers(0, static_cast<int64_t>(rows.size())), dst);
}

}  // namespace dtrain
