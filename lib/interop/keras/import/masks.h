// Padding masks in a Keras model.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "interop/keras/import/model_calls.h"
#include "nn/layer.h"

namespace dtrain {

/// Results of follow_masks(). The vectors are indexed by call.
struct KerasMasks {
  /// True if the call creates a mask that another call reads, or a mask that belongs to an output of the
  /// model.
  std::vector<bool> is_used;
  /// True if the dtrain layer needs `ignore_mask`. The reason is either that the Keras layer loses the mask
  /// of an input, or that the dtrain layer cannot pass the mask on.
  std::vector<bool> ignores;
  /// descriptions of calls that read masks in a way that dtrain cannot express
  std::vector<std::string> problems;
};

/// Follows the masks from call to call. If no call uses the mask of an embedding, the mask is left out.
/// `is_needed`: true for each call that is needed; all other calls are ignored. `keras_major`: the major
/// version of Keras that wrote the file. `rule_of`: returns the mask rule of the dtrain layer for a call.
KerasMasks follow_masks(const KerasCalls& calls, const std::vector<bool>& is_needed, int keras_major,
                        const std::function<MaskRule(const KerasLayerCall&)>& rule_of);

}  // namespace dtrain
