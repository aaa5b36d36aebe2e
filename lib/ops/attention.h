// Scaled dot-product attention. The attention weights are computed tile by tile and are never stored as a
// whole, so the memory grows linearly with the lengths of the sequences.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.h"
#include "base/philox.h"

namespace dtrain {

/// The sizes and options of attention. Query i of a sample has position first_query + i, and key j has
/// position j. Head h of the queries uses head h / (heads / kv_heads) of the keys and values.
struct AttentionSpec {
  int64_t batch = 0, queries = 0, keys = 0;
  int64_t heads = 1, kv_heads = 1;  ///< kv_heads divides heads
  int64_t key_dim = 0, value_dim = 0;
  bool causal = false;      ///< a query sees the keys up to its own position only
  int64_t first_query = 0;  ///< position of the first query
  float dropout = 0;        ///< fraction of the weights that is set to zero
  bool training = true;     ///< true if there will be backward calls
  bool masked = true;       ///< true if calls may have a key_mask
  /// Number of elements from one position of a sequence to the next. 0 means that there are no gaps between
  /// the heads of adjacent positions. There are never gaps between samples. The arrays of the gradients have
  /// the same strides. An array is aligned to 16 bytes if the sizes of its rows and heads are multiples of 16
  /// bytes.
  int64_t query_stride = 0, key_stride = 0, value_stride = 0;

  bool operator==(const AttentionSpec&) const = default;
  /// Number of query heads that share one head of keys and values.
  DTRAIN_HOST_DEVICE int64_t group() const { return heads / kv_heads; }
  DTRAIN_HOST_DEVICE int64_t query_step() const { return query_stride ? query_stride : heads * key_dim; }
  DTRAIN_HOST_DEVICE int64_t key_step() const { return key_stride ? key_stride : kv_heads * key_dim; }
  DTRAIN_HOST_DEVICE int64_t value_step() const { return value_stride ? value_stride : kv_heads * value_dim; }
};

/// Random numbers for the dropout of the attention weights. The weight of key `key` uses word key % 4 of the
/// Philox block random(high, low), where high = *step + ((query position * heads + head) << 32) and low =
/// ((first_sample + sample) << 32) | (key / 4).
struct AttentionDropout {
  Philox random;
  const uint64_t* step = nullptr;  ///< device memory
  uint64_t first_sample = 0;       ///< index of the first sample in the global batch
};

/// dst = softmax(query key^T / sqrt(key_dim)) value, for each sample and head. If a query sees no valid key,
/// its output and its gradients are zero.
class Attention {
 public:
  virtual ~Attention() = default;
  virtual size_t scratch_bytes() const = 0;

  struct ForwardArguments {
    const void *query, *key, *value;  ///< [batch, queries or keys, heads or kv_heads, key_dim or value_dim]
    /// [batch, keys]: 0 for a key that every query ignores. If null, all keys are valid.
    const uint8_t* key_mask = nullptr;
    void* dst = nullptr;  ///< [batch, queries, heads, value_dim], contiguous
    /// [batch, heads, queries], written for the backward pass; null if not needed.
    float* logsumexp = nullptr;
    AttentionDropout dropout = {};  ///< required if the spec has dropout
    void* scratch = nullptr;
  };
  virtual void forward(const ForwardArguments& args) = 0;

  struct BackwardArguments {
    /// These arrays, key_mask and dropout are the same as in the forward call.
    const void *query, *key, *value;
    const uint8_t* key_mask = nullptr;
    const void* dst = nullptr;         ///< as the forward call wrote it
    const float* logsumexp = nullptr;  ///< as the forward call wrote it
    const void* diff_dst = nullptr;
    void *diff_query = nullptr, *diff_key = nullptr, *diff_value = nullptr;  ///< all are written
    AttentionDropout dropout = {};
    void* scratch = nullptr;
  };
  virtual void backward(const BackwardArguments& args) = 0;
};

}  // namespace dtrain
