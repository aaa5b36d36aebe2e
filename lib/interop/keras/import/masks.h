// Masks of padding in a Keras model.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "interop/keras/import/model_calls.h"
#include "nn/layer.h"

namespace dtrain {

/// The masks of a model's calls. The vectors are indexed by call.
struct KerasMasks {
  /// Whether the call creates a mask that another call reads, or that an output of the model has.
  std::vector<bool> is_used;
  /// Whether dtrain's layer needs `ignore_mask`, because Keras's layer loses the mask of an input, or because
  /// dtrain's layer cannot pass it on.
  std::vector<bool> ignores;
  std::vector<std::string> problems;  ///< reads that dtrain cannot express
};

/// Follows the masks through the calls. Masks of embeddings that are not used are left out. `is_needed`:
/// whether each call is needed; other calls are ignored. `keras_major`: the major version of the Keras that
/// wrote the file. `rule_of`: returns the rule of the dtrain layer for a call.
KerasMasks follow_masks(const KerasCalls& calls, const std::vector<bool>& is_needed, int keras_major,
                        const std::function<MaskRule(const KerasLayerCall&)>& rule_of);

}  // namespace dtrain
