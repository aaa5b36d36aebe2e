#include "nn/metrics/table.h"

namespace dtrain {

template <>
const Registry<Metric>& registry<Metric>() {
  static const Registry<Metric> table = [] {
    Registry<Metric> t("metric");
    add_accuracy(t);
    add_class_metrics(t);
    add_confusion_metrics(t);
    add_auc(t);
    add_precision_at_recall(t);
    add_mean_errors(t);
    add_r2_score(t);
    return t;
  }();
  return table;
}

}  // namespace dtrain
