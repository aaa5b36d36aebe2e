// Causal self-attention that computes one position per call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "nn/layer.h"

namespace dtrain {

/// The options of a multi_head_attention layer. Options that the user did not set contain their default
/// values.
struct CachedAttentionOptions {
  int64_t positions = 0;  // number of positions of the longest sequence
  int64_t heads = 1, kv_heads = 1, key_dim = 0, value_dim = 0;
  bool use_bias = true;
  std::optional<double> rotary_base;  // nullopt: no rotation

  /// Returns the number of elements of the keys and values that are kept for a sample.
  int64_t kept_elements() const { return positions * kv_heads * (key_dim + value_dim); }
};

/// Returns the step layer (Layer::step_layer()) of a causal multi_head_attention layer with one input. The
/// step layer uses the parameters of that layer. After prepare(), it stores the keys and values of all
/// positions in device memory. A call computes one position of each sample: it stores the key and the value
/// of this position, and then computes the output from the keys and values of the positions up to this one.
/// The positions of a sample must be computed in order, beginning with 0. The output is bitwise identical to
/// the output for the whole sequence if each row of a matrix product is computed independently of the other
/// rows (make_cpu_ops()).
std::shared_ptr<const Layer> cached_attention(const CachedAttentionOptions& options);

}  // namespace dtrain
