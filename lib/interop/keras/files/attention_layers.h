// The layers of the model that computes an attention for which Keras has no layer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/json.h"
#include "base/shape.h"

namespace dtrain {

/// The sizes and options of a multi_head_attention that determine the layers of its model.
struct KerasAttention {
  std::vector<Shape> inputs;  ///< [positions, features] of: query; query, value; or query, value, key
  Shape output;               ///< [positions, features]
  int64_t heads = 1, kv_heads = 1, key_dim = 1, value_dim = 1;
  std::optional<double> rotary_base;
  bool causal = false, use_bias = true;
  double dropout = 0;
};

/// The names of the input layers. An attention with fewer inputs has only the first of these layers.
inline constexpr std::array kAttentionInputs{"query_input", "value_input", "key_input"};
/// The names of the layers that have the weights.
inline constexpr std::array kAttentionProducts{"query_product", "key_product", "value_product",
                                               "attention_output"};
/// The options of an attention layer that its layers for queries, keys, values and outputs share.
inline constexpr std::array kAttentionWeightOptions{"kernel_initializer", "kernel_regularizer",
                                                    "kernel_constraint",  "bias_initializer",
                                                    "bias_regularizer",   "bias_constraint"};

/// Returns the index of the input from which an attention with `inputs` inputs computes the keys.
inline size_t attention_key_input(size_t inputs) {
  return inputs - 1;
}

/// Returns base^(-(i % half) / half) for each element i of a head with `dim` = 2 * half elements. This is the
/// angle by which element i is rotated for each position.
std::vector<double> rotary_frequencies(double base, int64_t dim);

/// Returns the entries of the layers in the config of the model. `products`: the options that all layers of
/// kAttentionProducts have.
Json keras_attention_layers(const KerasAttention& attention, const Json& products);

}  // namespace dtrain
