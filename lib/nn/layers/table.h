// Each adds one layer (or two that share their code) to the table of layers.
#pragma once

#include "nn/layer.h"

namespace dtrain {

void add_activation(KindTable<Layer>& table);
void add_add(KindTable<Layer>& table);
void add_batch_normalization(KindTable<Layer>& table);
void add_concatenate(KindTable<Layer>& table);
void add_conv2d(KindTable<Layer>& table);
void add_conv2d_transpose(KindTable<Layer>& table);
void add_dense(KindTable<Layer>& table);
void add_depthwise_conv2d(KindTable<Layer>& table);
void add_dropout(KindTable<Layer>& table);
void add_embedding(KindTable<Layer>& table);
void add_flatten(KindTable<Layer>& table);
void add_global_pooling2d(KindTable<Layer>& table);  // global_max_pooling2d, global_average_pooling2d
void add_layer_normalization(KindTable<Layer>& table);
void add_multiply(KindTable<Layer>& table);
void add_pooling2d(KindTable<Layer>& table);  // max_pooling2d, average_pooling2d
void add_reshape(KindTable<Layer>& table);
void add_zero_padding2d(KindTable<Layer>& table);

}  // namespace dtrain
