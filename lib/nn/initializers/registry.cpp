#include "nn/initializers/table.h"

namespace dtrain {

template <>
const Registry<Initializer>& registry<Initializer>() {
  static const Registry<Initializer> table = [] {
    Registry<Initializer> t("initializer");
    add_constants(t);
    add_random(t);
    add_variance_scaling(t);
    add_orthogonal(t);
    return t;
  }();
  return table;
}

}  // namespace dtrain
