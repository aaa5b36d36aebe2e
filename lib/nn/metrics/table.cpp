#include "nn/metrics/table.h"

namespace dtrain {

template <>
const KindTable<Metric>& kinds<Metric>() {
  static const KindTable<Metric> table = [] {
    KindTable<Metric> t("metric");
    add_accuracy(t);
    add_mean_errors(t);
    return t;
  }();
  return table;
}

}  // namespace dtrain
