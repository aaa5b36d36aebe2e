// Each function adds the losses of one file to the registry of losses.
#pragma once

#include "nn/loss.h"

namespace dtrain {

void add_cross_entropy(Registry<Loss>& table);  // sparse_categorical_crossentropy, categorical_crossentropy
void add_elementwise_losses(Registry<Loss>& table);  // binary_*crossentropy, mean_*_error, huber, hinge, ...
void add_row_losses(Registry<Loss>& table);          // categorical_focal_crossentropy, cosine_similarity
void add_overlap_losses(Registry<Loss>& table);      // dice, tversky

}  // namespace dtrain
