// Keras's weight constraints, which are options of layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/shape.h"
#include "config/registry.h"
#include "ops/specs.h"

namespace dtrain {

/// A limit that a weight satisfies after every update. As in Keras, initial values need not satisfy it.
struct Constraint {
  ConstraintSpec spec;  // the constraint, except for the sizes of the weight (see spec_for())
  // Axes over which norms are computed; negative ones count from the last axis.
  std::vector<int64_t> axes = {};

  /// Returns true if the limit applies to each element separately. Otherwise the limit is on norms, which are
  /// computed over several elements of the weight.
  bool is_elementwise() const { return spec.non_negative; }
  /// Checks the axes for a weight of this shape. Returns the error text, or "" if the axes are valid.
  std::string mistake_for(const Shape& shape) const;
  /// Returns the spec for a weight of this shape. The axes must be valid for this shape (mistake_for()).
  ConstraintSpec spec_for(const Shape& shape) const;
};

template <>
const Registry<Constraint>& registry<Constraint>();

/// The `..._constraint:` option of a weight; nullopt if the weight has no constraint.
using OptionalConstraint = std::optional<Configured<Constraint>>;

}  // namespace dtrain
