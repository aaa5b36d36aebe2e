#include "data/transforms/transform.h"

namespace dtrain {

template <>
const Registry<Transform>& registry<Transform>() {
  static const Registry<Transform> table = [] {
    Registry<Transform> all("transform");
    add_reshape(all);
    add_rescale(all);
    add_cast(all);
    add_normalize(all);
    add_standardize(all);
    add_one_hot(all);
    return all;
  }();
  return table;
}

}  // namespace dtrain
