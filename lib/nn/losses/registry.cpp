#include "nn/losses/table.h"

namespace dtrain {

template <>
const Registry<Loss>& registry<Loss>() {
  static const Registry<Loss> table = [] {
    Registry<Loss> t("loss");
    add_cross_entropy(t);
    add_elementwise_losses(t);
    add_row_losses(t);
    add_overlap_losses(t);
    return t;
  }();
  return table;
}

}  // namespace dtrain
