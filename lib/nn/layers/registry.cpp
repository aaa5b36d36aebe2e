#include "nn/layers/table.h"

namespace dtrain {

template <>
const Registry<Layer>& registry<Layer>() {
  static const Registry<Layer> table = [] {
    Registry<Layer> t("layer");
    add_dense(t);
    add_conv2d(t);
    add_depthwise_conv2d(t);
    add_separable_conv2d(t);
    add_conv2d_transpose(t);
    add_pooling2d(t);
    add_global_pooling2d(t);
    add_batch_normalization(t);
    add_layer_normalization(t);
    add_group_normalization(t);
    add_rms_normalization(t);
    add_activation(t);
    add_softmax(t);
    add_prelu(t);
    add_dropout(t);
    add_spatial_dropout(t);
    add_gaussian_noise(t);
    add_rescaling(t);
    add_resizing(t);
    add_flatten(t);
    add_reshape(t);
    add_permute(t);
    add_repeat_vector(t);
    add_add(t);
    add_multiply(t);
    add_merges(t);
    add_dot(t);
    add_concatenate(t);
    add_zero_padding2d(t);
    add_cropping2d(t);
    add_upsampling2d(t);
    add_conv1d(t);
    add_conv1d_transpose(t);
    add_pooling1d(t);
    add_shape1d(t);
    add_conv3d(t);
    add_pooling3d(t);
    add_global_pooling3d(t);
    add_shape3d(t);
    add_embedding(t);
    add_masking(t);
    add_lstm(t);
    add_gru(t);
    add_simple_rnn(t);
    add_bidirectional(t);
    add_time_distributed(t);
    add_multi_head_attention(t);
    add_position_embedding(t);
    return t;
  }();
  return table;
}

}  // namespace dtrain
