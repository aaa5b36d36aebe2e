// The kinds of changes that samples undergo between file and model.
#pragma once

#include "config/registry.h"
#include "data/columns/column_plan.h"
#include "data/columns/fit.h"

namespace dtrain {

/// Holds a transform's options. Immutable.
class Transform {
 public:
  virtual ~Transform() = default;
  /// Adds the transform's passes to the plan of a column that it is for. Throws UserError where the column
  /// does not suit it.
  virtual void apply(ColumnPlan& /*plan*/) const {}
  /// Whether it goes by numbers of the training split: then fit() computes them, and apply_fitted()
  /// stands for apply().
  virtual bool is_fitted() const { return false; }
  virtual FittedStep fit(const FitSamples& /*samples*/) const { return {}; }
  virtual void apply_fitted(ColumnPlan& /*plan*/, const FittedStep& /*step*/) const {}
  /// Whether it is for a column where its `of:` does not say so. `after` is what the column should be after
  /// it; `target`: the column is a target, not an input of the model.
  virtual bool is_for(const TensorSpec& /*after*/, bool target) const { return !target; }
  /// What the stored column should be, given what it should become: readers of formats that leave a choice
  /// ask.
  virtual TensorSpec before(const TensorSpec& after) const { return after; }
};

template <>
const Registry<Transform>& registry<Transform>();

// Each transform adds itself; transforms.cpp lists them.
void add_reshape(Registry<Transform>& table);
void add_rescale(Registry<Transform>& table);
void add_cast(Registry<Transform>& table);
void add_normalize(Registry<Transform>& table);
void add_one_hot(Registry<Transform>& table);
void add_standardize(Registry<Transform>& table);

}  // namespace dtrain
