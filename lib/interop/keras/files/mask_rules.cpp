#include "interop/keras/files/mask_rules.h"

#include <algorithm>
#include <array>

namespace dtrain {

KerasMaskRule keras_mask_rule(const std::string& class_name) {
  constexpr std::array kPassed{"Activation",
                               "AddPositionEmbedding",
                               "AddSinePositionEncoding",
                               "ReLU",
                               "LeakyReLU",
                               "ELU",
                               "PReLU",
                               "Softmax",
                               "ThresholdedReLU",
                               "Dense",
                               "Dropout",
                               "GaussianNoise",
                               "SpatialDropout1D",
                               "SpatialDropout2D",
                               "LayerNormalization",
                               "Rescaling",
                               "GroupNormalization",
                               "UnitNormalization",
                               "BatchNormalization",
                               "TimeDistributed",
                               "GaussianDropout"};
  constexpr std::array kMerged{"Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate"};
  constexpr std::array kRead{"LSTM",
                             "GRU",
                             "SimpleRNN",
                             "Bidirectional",
                             "GlobalAveragePooling1D",
                             "MultiHeadAttention",
                             "GroupQueryAttention",
                             "GroupedQueryAttention"};  // the same layer, as .h5 files call it
  const auto is_in = [&](const auto& names) {
    return std::find(names.begin(), names.end(), class_name) != names.end();
  };
  if (is_in(kPassed)) return KerasMaskRule::passed;
  if (is_in(kMerged)) return KerasMaskRule::merged;
  return is_in(kRead) ? KerasMaskRule::read : KerasMaskRule::lost;
}

}  // namespace dtrain
