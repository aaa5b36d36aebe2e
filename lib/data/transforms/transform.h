// Kinds of changes that samples undergo between file and model.
#pragma once

#include "config/registry.h"
#include "data/column_plan.h"

namespace dtrain {

/// A transform's options. Immutable.
class Transform {
 public:
  virtual ~Transform() = default;
  /// Adds its part to the plan of a column that it applies to. Throws UserError where the column does not
  /// suit it.
  virtual void apply(ColumnPlan& plan) const = 0;
  /// It applies to the targets, not to the inputs.
  virtual bool for_targets() const { return false; }
  /// What the stored column should be like, given what it should become: readers of formats that leave a
  /// choice ask.
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

}  // namespace dtrain
