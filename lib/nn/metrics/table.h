// Each function adds the metrics of one file to the registry of metrics.
#pragma once

#include "nn/loss.h"

namespace dtrain {

void add_accuracy(Registry<Metric>& table);           // accuracy, its variants, top-k
void add_class_metrics(Registry<Metric>& table);      // precision, recall, f1_score, dice
void add_confusion_metrics(Registry<Metric>& table);  // mean_iou, cohen_kappa, matthews_correlation
void add_auc(Registry<Metric>& table);                // auc
void add_precision_at_recall(Registry<Metric>& table);
void add_mean_errors(Registry<Metric>& table);  // mean_*_error, losses as metrics, perplexity
void add_r2_score(Registry<Metric>& table);     // r2_score

}  // namespace dtrain
