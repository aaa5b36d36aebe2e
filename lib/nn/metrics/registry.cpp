#include "nn/metrics/table.h"

namespace dtrain {

template <>
const Registry<Metric>& registry<Metric>() {
  static const Registry<Metric> table = [] {
    Registry<Metric> t("metric");
    add_accuracy(t);
    add_mean_errors(t);
    return t;
  }();
  return table;
}

}  // namespace dtrain
