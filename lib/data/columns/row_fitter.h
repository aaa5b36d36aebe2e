// Numbers that transforms go by, as they are known, or else as the samples of a split give them.
#pragma once

#include <span>
#include <string>

#include "data/columns/column.h"
#include "data/columns/column_transforms.h"

namespace dtrain {

/// The samples that transforms may be fitted on.
struct FitRows {
  const Column* column = nullptr;  // null: on none
  std::span<const int64_t> rows;   // of the column; empty: all of [from, to)
  int64_t from = 0, to = 0;
  bool is_training = false;  // of the training split: what is known of other transforms is found anew

  int64_t size() const { return rows.empty() ? to - from : static_cast<int64_t>(rows.size()); }
};

/// Of one input or target.
class RowFitter final : public Fitter {
 public:
  /// Adds what it finds to `facts`, under `name`.
  RowFitter(DataFacts& facts, std::string name, const FitRows& rows)
      : facts_(facts), name_(std::move(name)), rows_(rows) {}
  FittedStep next(const ColumnPlan& plan, const std::string& kind, const std::string& options,
                  const std::function<FittedStep(const FitSamples&)>& fit) override;

 private:
  FittedStep found(const ColumnPlan& plan, const std::function<FittedStep(const FitSamples&)>& fit) const;

  DataFacts& facts_;
  std::string name_;
  FitRows rows_;
  size_t done_ = 0;    // steps
  std::string chain_;  // the options of these, and of the transforms between them
};

/// Adds the pass that fills gaps as SourceFacts::fills says for this column.
void add_fill(ColumnPlan& plan, const std::vector<std::string>& fills, Fitter& fitter);

}  // namespace dtrain
