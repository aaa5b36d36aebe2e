// Causal self-attention, one position at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "nn/layer.h"

namespace dtrain {

struct CachedAttentionOptions {
  int64_t positions = 0;  // of the longest sequence
  int64_t heads = 1, kv_heads = 1, key_dim = 0, value_dim = 0;
  bool use_bias = true;
  std::optional<double> rotary_base;  // nullopt: no rotation

  /// Returns the number of elements of the keys and values that are kept for a sample.
  int64_t kept_elements() const { return positions * kv_heads * (key_dim + value_dim); }
};

/// Returns the step layer (Layer::step_layer()) of a causal multi_head_attention with one input. It has the
/// parameters of that layer. Its prepared layer owns the keys and values of all positions, in device memory:
/// a call writes those of the sample's position, and computes the output from them and those of the earlier
/// positions, with the same bits as the whole sequence would give, if rows of products do not depend on each
/// other (make_cpu_ops()). The positions of a sample must be computed in order, from 0.
std::shared_ptr<const Layer> cached_attention(const CachedAttentionOptions& options);

}  // namespace dtrain
