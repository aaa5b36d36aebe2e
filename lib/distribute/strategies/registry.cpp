#include "distribute/strategies/table.h"

namespace dtrain {

template <>
const Registry<Strategy>& registry<Strategy>() {
  static const Registry<Strategy> table = [] {
    Registry<Strategy> t("strategy");
    add_single(t);
    add_mirrored(t);
    add_placed(t);
    add_pipeline(t);
    add_sharded(t);
    return t;
  }();
  return table;
}

}  // namespace dtrain
