// Transforms: changes to samples between the file and the model.
#pragma once

#include "config/registry.h"
#include "data/columns/column_plan.h"
#include "data/columns/fit.h"

namespace dtrain {

/// Holds a transform's options. Immutable.
class Transform {
 public:
  virtual ~Transform() = default;
  /// Adds the transform's passes to a column's plan. Throws UserError if the transform does not fit the
  /// column.
  virtual void apply(ColumnPlan& /*plan*/) const {}
  /// Returns true if the transform depends on statistics of the training split. If so, fit() computes them,
  /// and apply_fitted() is called instead of apply().
  virtual bool is_fitted() const { return false; }
  virtual FittedStep fit(const FitSamples& /*samples*/) const { return {}; }
  virtual void apply_fitted(ColumnPlan& /*plan*/, const FittedStep& /*step*/) const {}
  /// Returns true if the transform applies to a column when it has no `of:`. `after` is the required form of
  /// the column after the transform; `target` is true if the column is a target, not an input of the model.
  virtual bool is_for(const TensorSpec& /*after*/, bool target) const { return !target; }
  /// Returns the form of the stored column from which the transform produces `after`. Used by readers whose
  /// file format does not determine the form.
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
