#include "interop/layer_formats.h"
#include "interop/layers/table.h"

namespace dtrain {

const std::vector<LayerFormats>& all_layer_formats() {
  static const std::vector<LayerFormats> rows = [] {
    std::vector<LayerFormats> table;
    add_dense_formats(table);
    add_convolution_formats(table);
    add_pooling_formats(table);
    add_normalization_formats(table);
    add_activation_formats(table);
    add_prelu_formats(table);
    add_shape_formats(table);
    add_sequence_formats(table);
    add_merge_formats(table);
    add_dropout_formats(table);
    add_rescaling_formats(table);
    add_resizing_formats(table);
    add_embedding_formats(table);
    add_recurrent_formats(table);
    add_bidirectional_formats(table);
    add_time_distributed_formats(table);
    add_attention_formats(table);
    add_position_formats(table);
    return table;
  }();
  return rows;
}

}  // namespace dtrain
