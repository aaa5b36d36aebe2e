// The options that a layer has for each weight.
#pragma once

#include <string>

#include "nn/constraint.h"
#include "nn/layer.h"
#include "nn/regularizer.h"

namespace dtrain {

/// The options of one weight: `kernel_initializer`, `kernel_regularizer` and `kernel_constraint`.
struct WeightOptions {
  Configured<Initializer> initializer;
  OptionalRegularizer regularizer = {};
  OptionalConstraint constraint = {};

  /// Returns a parameter of this name and shape with these options.
  ParameterSpec parameter(const std::string& name, const Shape& shape) const;
};

/// Returns the schema of these options, for Schema::part. `what` names the weight: "the bias".
Schema<WeightOptions> weight_schema(const std::string& what);

}  // namespace dtrain
