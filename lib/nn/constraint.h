// Keras's constraints, as options of layers.
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
  ConstraintSpec spec;  // the constraint without its sizes
  // Axes over which norms are computed; negative ones count from the last axis.
  std::vector<int64_t> axes = {};

  /// Returns whether each element is limited by itself. Otherwise the limit needs the whole weight.
  bool is_elementwise() const { return spec.non_negative; }
  /// Returns the mistake in the axes, for a weight of this shape; "" if there is none.
  std::string mistake_for(const Shape& shape) const;
  /// Returns the spec for a weight of this shape, for which mistake_for() is empty.
  ConstraintSpec spec_for(const Shape& shape) const;
};

template <>
const Registry<Constraint>& registry<Constraint>();

/// A `..._constraint:` option; nullopt: no limit.
using OptionalConstraint = std::optional<Configured<Constraint>>;

}  // namespace dtrain
