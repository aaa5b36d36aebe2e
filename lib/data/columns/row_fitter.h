// Supplies the statistics of fitted transforms, such as means. They are either known from the run or computed
// over the samples of a split.
#pragma once

#include <span>
#include <string>

#include "data/columns/column.h"
#include "data/columns/column_transforms.h"

namespace dtrain {

/// The samples on which the transforms of a column may be fitted.
struct FitRows {
  const Column* column = nullptr;  // null if no samples are available for fitting
  std::span<const int64_t> rows;   // row numbers in the column; if empty, all rows [from, to) are used
  int64_t from = 0, to = 0;
  /// Whether the rows belong to the training split. Only in this case are saved statistics computed again if
  /// the transforms have changed.
  bool is_training = false;

  int64_t size() const { return rows.empty() ? to - from : static_cast<int64_t>(rows.size()); }
};

/// Supplies the statistics of the fitted transforms of one input or target.
class RowFitter final : public Fitter {
 public:
  /// Statistics that this object computes are added to `facts` under `name`, the name of the input or target.
  RowFitter(DataFacts& facts, std::string name, const FitRows& rows)
      : facts_(facts), name_(std::move(name)), rows_(rows) {}
  FittedStep next(const ColumnPlan& plan, const std::string& kind, const std::string& options,
                  const std::function<FittedStep(const FitSamples&)>& fit) override;

 private:
  FittedStep found(const ColumnPlan& plan, const std::function<FittedStep(const FitSamples&)>& fit) const;

  DataFacts& facts_;
  std::string name_;
  FitRows rows_;
  size_t done_ = 0;    // number of steps that next() has returned
  std::string chain_;  // options of all transforms up to the last step that next() has returned
};

/// Adds a pass that replaces missing values (NaN). `fills` is the column's entry in SourceFacts::fills.
void add_fill(ColumnPlan& plan, const std::vector<std::string>& fills, Fitter& fitter);

}  // namespace dtrain
