// Keras's regularizers, which are options of layers.
#pragma once

#include <optional>
#include <string>

#include "base/shape.h"
#include "config/registry.h"
#include "ops/specs.h"

namespace dtrain {

/// Keras's orthogonal_regularizer. It penalizes rows (or columns) of a weight that are not orthogonal to each
/// other. OrthogonalSpec in ops/specs.h has the formula.
struct OrthogonalPenalty {
  float factor = 0;  // 0: no penalty
  bool of_columns = false;

  explicit operator bool() const { return factor != 0; }
  /// Checks whether a weight of this shape can have the penalty. Returns the error text, such as "expected a
  /// weight with two axes", or "" if it can.
  std::string mistake_for(const Shape& shape) const;
  /// Returns the spec of the penalty for a weight of this shape. The shape must be valid (mistake_for()).
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

/// A `..._regularizer:` option of a layer; nullopt if there is no penalty.
using OptionalRegularizer = std::optional<Configured<Regularizer>>;

}  // namespace dtrain
