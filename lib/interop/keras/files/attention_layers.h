// Layers of the Keras model that computes an attention layer. The model is needed because Keras has no
// equivalent layer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/json.h"
#include "base/shape.h"

namespace dtrain {

/// The sizes and options of a multi_head_attention that determine the layers of the Keras model.
struct KerasAttention {
  /// [positions, features] of each input: {query}, {query, value} or {query, value, key}
  std::vector<Shape> inputs;
  Shape output;  ///< [positions, features]
  int64_t heads = 1, kv_heads = 1, key_dim = 1, value_dim = 1;
  std::optional<double> rotary_base;
  bool causal = false, use_bias = true;
  double dropout = 0;
};

/// Names of the input layers. A layer with fewer than three inputs uses only the first names.
inline constexpr std::array kAttentionInputs{"query_input", "value_input", "key_input"};
/// The names of the layers that have the weights. These layers compute the queries, the keys, the values and
/// the output.
inline constexpr std::array kAttentionProducts{"query_product", "key_product", "value_product",
                                               "attention_output"};
/// Options of an attention layer that are passed to all four layers of kAttentionProducts.
inline constexpr std::array kAttentionWeightOptions{"kernel_initializer", "kernel_regularizer",
                                                    "kernel_constraint",  "bias_initializer",
                                                    "bias_regularizer",   "bias_constraint"};

/// Returns the index of the input from which an attention layer computes its keys. `inputs`: the number of
/// inputs of the layer.
inline size_t attention_key_input(size_t inputs) {
  return inputs - 1;
}

/// Returns base^(-(i % half) / half) for each element i of a head with `dim` = 2 * half elements: the angle
/// by which element i is rotated for each position.
std::vector<double> rotary_frequencies(double base, int64_t dim);

/// Returns the list of layers for the config of the Keras model. `products`: the options that all layers of
/// kAttentionProducts share.
Json keras_attention_layers(const KerasAttention& attention, const Json& products);

}  // namespace dtrain
