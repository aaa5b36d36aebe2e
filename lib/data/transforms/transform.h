// Transforms change samples after they are read from the files and before they are passed to the model.
#pragma once

#include "config/registry.h"
#include "data/columns/column_plan.h"
#include "data/columns/fit.h"

namespace dtrain {

/// Base class of transforms. An object holds the options of one transform and is immutable.
class Transform {
 public:
  virtual ~Transform() = default;
  /// Adds the passes of the transform to the plan of a column. Throws UserError if the transform cannot be
  /// applied to the column.
  virtual void apply(ColumnPlan& /*plan*/) const {}
  /// Returns true if the transform depends on statistics of the training split. If so, fit() computes them,
  /// and apply_fitted() is called instead of apply().
  virtual bool is_fitted() const { return false; }
  virtual FittedStep fit(const FitSamples& /*samples*/) const { return {}; }
  virtual void apply_fitted(ColumnPlan& /*plan*/, const FittedStep& /*step*/) const {}
  /// Returns true if the transform is applied to a column by default, that is, if the configuration has no
  /// `of:`. `after` is the type and shape that the column must have after the transform. `target` says
  /// whether the column is a target or an input of the model.
  virtual bool is_for(const TensorSpec& /*after*/, bool target) const { return !target; }
  /// Returns the type and shape that a stored column must have so that the result of the transform is
  /// `after`. Used by readers of file formats that do not contain the type and shape.
  virtual TensorSpec before(const TensorSpec& after) const { return after; }
};

template <>
const Registry<Transform>& registry<Transform>();

// Each transform registers itself; transforms.cpp lists them.
void add_reshape(Registry<Transform>& table);
void add_rescale(Registry<Transform>& table);
void add_cast(Registry<Transform>& table);
void add_normalize(Registry<Transform>& table);
void add_one_hot(Registry<Transform>& table);
void add_standardize(Registry<Transform>& table);

}  // namespace dtrain
