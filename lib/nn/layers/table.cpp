#include "nn/layers/table.h"

namespace dtrain {

template <>
const KindTable<Layer>& kinds<Layer>() {
  static const KindTable<Layer> table = [] {
    KindTable<Layer> t("layer");
    add_dense(t);
    add_conv2d(t);
    add_pooling2d(t);
    add_global_pooling2d(t);
    add_activation(t);
    add_dropout(t);
    add_flatten(t);
    return t;
  }();
  return table;
}

}  // namespace dtrain
