#include "nn/initializers/table.h"

namespace dtrain {

template <>
const KindTable<Initializer>& kinds<Initializer>() {
  static const KindTable<Initializer> table = [] {
    KindTable<Initializer> t("initializer");
    add_constants(t);
    add_random(t);
    add_variance_scaling(t);
    return t;
  }();
  return table;
}

}  // namespace dtrain
