#include "nn/losses/table.h"

namespace dtrain {

template <>
const KindTable<Loss>& kinds<Loss>() {
  static const KindTable<Loss> table = [] {
    KindTable<Loss> t("loss");
    add_cross_entropy(t);
    add_elementwise_losses(t);
    return t;
  }();
  return table;
}

}  // namespace dtrain
