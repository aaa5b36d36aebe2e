// Supplies the numbers of fitted transforms: known numbers, or numbers computed over the samples of a split.
#pragma once

#include <span>
#include <string>

#include "data/columns/column.h"
#include "data/columns/column_transforms.h"

namespace dtrain {

/// Samples on which transforms may be fitted.
struct FitRows {
  const Column* column = nullptr;  // null if nothing can be fitted
  std::span<const int64_t> rows;   // rows of the column; empty for all of [from, to)
  int64_t from = 0, to = 0;
  /// Whether the rows are of the training split. Only then are saved numbers computed again if the transforms
  /// have changed.
  bool is_training = false;

  int64_t size() const { return rows.empty() ? to - from : static_cast<int64_t>(rows.size()); }
};

/// Supplies the numbers of the fitted transforms of one input or target.
class RowFitter final : public Fitter {
 public:
  /// Adds the numbers that this object computes to `facts`, under `name`.
  RowFitter(DataFacts& facts, std::string name, const FitRows& rows)
      : facts_(facts), name_(std::move(name)), rows_(rows) {}
  FittedStep next(const ColumnPlan& plan, const std::string& kind, const std::string& options,
                  const std::function<FittedStep(const FitSamples&)>& fit) override;

 private:
  FittedStep found(const ColumnPlan& plan, const std::function<FittedStep(const FitSamples&)>& fit) const;

  DataFacts& facts_;
  std::string name_;
  FitRows rows_;
  size_t done_ = 0;    // number of steps returned
  std::string chain_;  // options of the returned steps and of the transforms between them
};

/// Adds a pass that fills gaps according to SourceFacts::fills of this column.
void add_fill(ColumnPlan& plan, const std::vector<std::string>& fills, Fitter& fitter);

}  // namespace dtrain
