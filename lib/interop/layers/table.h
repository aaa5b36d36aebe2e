// Each function adds the rows of one family of layers to the table of formats.
#pragma once

#include <vector>

#include "interop/layer_formats.h"

namespace dtrain {

void add_activation_formats(std::vector<LayerFormats>& table);
void add_attention_formats(std::vector<LayerFormats>& table);
void add_bidirectional_formats(std::vector<LayerFormats>& table);
void add_convolution_formats(std::vector<LayerFormats>& table);
void add_dense_formats(std::vector<LayerFormats>& table);
void add_dropout_formats(std::vector<LayerFormats>& table);
void add_embedding_formats(std::vector<LayerFormats>& table);
void add_merge_formats(std::vector<LayerFormats>& table);
void add_normalization_formats(std::vector<LayerFormats>& table);
void add_pooling_formats(std::vector<LayerFormats>& table);
void add_position_formats(std::vector<LayerFormats>& table);
void add_prelu_formats(std::vector<LayerFormats>& table);
void add_recurrent_formats(std::vector<LayerFormats>& table);
void add_rescaling_formats(std::vector<LayerFormats>& table);
void add_resizing_formats(std::vector<LayerFormats>& table);
void add_sequence_formats(std::vector<LayerFormats>& table);
void add_shape_formats(std::vector<LayerFormats>& table);
void add_time_distributed_formats(std::vector<LayerFormats>& table);

}  // namespace dtrain
