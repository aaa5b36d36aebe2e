// Keras's regularizers, as options of layers.
#pragma once

#include <optional>
#include <string>

#include "base/shape.h"
#include "config/registry.h"
#include "ops/specs.h"

namespace dtrain {

/// Keras's orthogonal_regularizer: a penalty on the angles between the rows, or the columns, of a weight
/// (OrthogonalSpec in ops/specs.h has the formula).
struct OrthogonalPenalty {
  float factor = 0;  // 0: no penalty
  bool of_columns = false;

  explicit operator bool() const { return factor != 0; }
  /// Returns why a weight of this shape cannot have the penalty ("expected a weight with two axes"); "" if it
  /// can.
  std::string mistake_for(const Shape& shape) const;
  /// Returns the spec for a weight of this shape, for which mistake_for() is empty.
  OrthogonalSpec spec_for(const Shape& shape) const;
};

/// A penalty on a weight, which is added to the loss once per step. As in Keras, weights that are not trained
/// have no penalty.
struct Regularizer {
  PenaltySpec penalty;           // penalty on each element
  OrthogonalPenalty orthogonal;  // penalty on a weight with two axes
};

template <>
const Registry<Regularizer>& registry<Regularizer>();

/// A `..._regularizer:` option; nullopt: no penalty.
using OptionalRegularizer = std::optional<Configured<Regularizer>>;

}  // namespace dtrain
