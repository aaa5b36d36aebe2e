// Parts of the conversions of multi_head_attention that are used for several formats.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "nn/graph.h"

namespace dtrain {

class OnnxLayer;

/// Returns whether an option is neither missing nor null nor false.
bool option_is_set(const Json& options, const char* key);

/// Number and sizes of the heads of an attention layer, derived from its parameters.
struct Heads {
  int64_t heads, kv_heads, key_dim, value_dim;

  int64_t group() const { return heads / kv_heads; }
};

/// Returns the sizes of the heads of a multi_head_attention.
Heads heads_of(const GraphNode& node);

/// Returns the mask of the values. If the values have no mask, returns the mask of the keys; "" if neither
/// has a mask. `Layer` is OnnxLayer or TorchLayer.
template <class Layer>
std::string key_mask(Layer& layer) {
  const std::string of_values = layer.mask(layer.inputs() == 1 ? 0 : 1);
  return of_values.empty() ? layer.mask(layer.inputs() - 1) : of_values;
}

/// Conversion of multi_head_attention to ONNX (LayerFormats::onnx). Uses the operator Attention if the
/// operator set has it, otherwise matrix products and a softmax.
void attention_to_onnx(OnnxLayer& layer);

}  // namespace dtrain
