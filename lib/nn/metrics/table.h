// Each function adds the metrics of one file to the registry of metrics.
#pragma once

#include "nn/loss.h"

namespace dtrain {

void add_accuracy(Registry<Metric>& table);     // accuracy and its kinds, top-k
void add_mean_errors(Registry<Metric>& table);  // mean_absolute_error

}  // namespace dtrain
