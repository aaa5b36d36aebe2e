#include "data/transforms/transform.h"

namespace dtrain {

template <>
const KindTable<Transform>& kinds<Transform>() {
  static const KindTable<Transform> table = [] {
    KindTable<Transform> all("transform");
    add_reshape(all);
    add_rescale(all);
    add_cast(all);
    add_normalize(all);
    add_one_hot(all);
    return all;
  }();
  return table;
}

}  // namespace dtrain
