// Options that every loss has.
#pragma once

#include <string>
#include <utility>

#include "config/registry.h"

namespace dtrain {

struct LossOptions {
  double weight = 1;
};

/// Adds the fields of LossOptions to the schema of a struct derived from it.
template <class Options>
Schema<Options> with_loss_options(Schema<Options> schema) {
  schema.optional("weight", static_cast<double Options::*>(&Options::weight),
                  "weight of this loss in the sum of the losses of all outputs", at_least(0.0));
  return schema;
}

}  // namespace dtrain
