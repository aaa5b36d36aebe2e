// Keras's regularizers, as options of layers.
#pragma once

#include <optional>

#include "config/registry.h"
#include "ops/specs.h"

namespace dtrain {

/// A penalty on a weight, which is added to the loss once per step. As in Keras, weights that are not trained
/// have no penalty.
struct Regularizer {
  PenaltySpec penalty;
};

template <>
const Registry<Regularizer>& registry<Regularizer>();

/// A `..._regularizer:` option; nullopt: no penalty.
using OptionalRegularizer = std::optional<Configured<Regularizer>>;

}  // namespace dtrain
