// Each adds the losses of one file to the table of losses.
#pragma once

#include "nn/loss.h"

namespace dtrain {

void add_cross_entropy(KindTable<Loss>& table);  // sparse_categorical_crossentropy, categorical_crossentropy
void add_elementwise_losses(KindTable<Loss>& table);  // binary_crossentropy, mean_*_error, huber

}  // namespace dtrain
