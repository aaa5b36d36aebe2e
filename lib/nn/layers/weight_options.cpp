#include "nn/layers/weight_options.h"

#include <fmt/format.h>

namespace dtrain {

ParameterSpec WeightOptions::parameter(const std::string& name, const Shape& shape) const {
  ParameterSpec spec{name, shape, initializer, {}};
  // If the regularizer had an error, which was already reported, the option has no value.
  if (regularizer && *regularizer) {
    spec.penalty = (*regularizer)->penalty;
    spec.orthogonal = (*regularizer)->orthogonal;
  }
  if (constraint) spec.constraint = constraint->value;
  return spec;
}

Schema<WeightOptions> weight_schema(const std::string& what) {
  using O = WeightOptions;
  return Schema<O>("Options of a weight.")
      .optional("initializer", &O::initializer, fmt::format("initializer of {}", what))
      .optional("regularizer", &O::regularizer,
                fmt::format("regularizer of {}: a penalty that is added to the loss", what))
      .optional("constraint", &O::constraint,
                fmt::format("constraint on {}, applied after each update", what));
}

}  // namespace dtrain
