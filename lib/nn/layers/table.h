// Each function adds one layer, or several layers that share code, to the registry of layers.
#pragma once

#include "nn/layer.h"

namespace dtrain {

void add_activation(Registry<Layer>& table);
void add_add(Registry<Layer>& table);
void add_batch_normalization(Registry<Layer>& table);
void add_bidirectional(Registry<Layer>& table);
void add_concatenate(Registry<Layer>& table);
void add_conv1d(Registry<Layer>& table);
void add_conv1d_transpose(Registry<Layer>& table);
void add_conv2d(Registry<Layer>& table);
void add_conv2d_transpose(Registry<Layer>& table);
void add_conv3d(Registry<Layer>& table);
void add_cropping2d(Registry<Layer>& table);
void add_dense(Registry<Layer>& table);
void add_depthwise_conv2d(Registry<Layer>& table);
void add_dot(Registry<Layer>& table);
void add_dropout(Registry<Layer>& table);
void add_embedding(Registry<Layer>& table);
void add_flatten(Registry<Layer>& table);
void add_gaussian_noise(Registry<Layer>& table);    // gaussian_noise, gaussian_dropout
void add_global_pooling2d(Registry<Layer>& table);  // global_max_pooling2d, global_average_pooling2d
void add_global_pooling3d(Registry<Layer>& table);
void add_group_normalization(Registry<Layer>& table);
void add_gru(Registry<Layer>& table);
void add_layer_normalization(Registry<Layer>& table);
void add_lstm(Registry<Layer>& table);
void add_merges(Registry<Layer>& table);  // subtract, average, maximum, minimum
void add_masking(Registry<Layer>& table);
void add_multi_head_attention(Registry<Layer>& table);
void add_multiply(Registry<Layer>& table);
void add_permute(Registry<Layer>& table);
void add_position_embedding(Registry<Layer>& table);  // also sinusoidal_position_encoding
void add_pooling1d(Registry<Layer>& table);           // also global pooling
void add_pooling2d(Registry<Layer>& table);           // max_pooling2d, average_pooling2d
void add_pooling3d(Registry<Layer>& table);
void add_prelu(Registry<Layer>& table);
void add_repeat_vector(Registry<Layer>& table);
void add_reshape(Registry<Layer>& table);
void add_rescaling(Registry<Layer>& table);
void add_resizing(Registry<Layer>& table);
void add_rms_normalization(Registry<Layer>& table);  // rms_normalization, unit_normalization
void add_separable_conv2d(Registry<Layer>& table);
void add_shape1d(Registry<Layer>& table);  // zero_padding1d, cropping1d, upsampling1d
void add_shape3d(Registry<Layer>& table);  // zero_padding3d, cropping3d, upsampling3d
void add_simple_rnn(Registry<Layer>& table);
void add_softmax(Registry<Layer>& table);
void add_spatial_dropout(Registry<Layer>& table);  // spatial_dropout1d, spatial_dropout2d
void add_time_distributed(Registry<Layer>& table);
void add_upsampling2d(Registry<Layer>& table);
void add_zero_padding2d(Registry<Layer>& table);

}  // namespace dtrain
