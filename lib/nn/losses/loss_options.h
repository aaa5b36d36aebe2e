// The options that every loss has.
#pragma once

#include <string>
#include <utility>

#include "config/registry.h"

namespace dtrain {

struct LossOptions {
  double weight = 1;
};

/// `schema` of a struct that is derived from LossOptions, with their fields.
template <class Options>
Schema<Options> with_loss_options(Schema<Options> schema) {
  schema.optional("weight", static_cast<double Options::*>(&Options::weight),
                  "what it counts for in the sum of all outputs' losses", at_least(0.0));
  return schema;
}

}  // namespace dtrain
