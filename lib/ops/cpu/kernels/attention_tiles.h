// Structs for the part of an attention operation that a thread computes with one kernel call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.h"
#include "ops/attention.h"

namespace dtrain::cpu {

/// One head of a sample. The pointers point to the head's first position.
struct AttentionHead {
  const float *query, *key, *value;
  const uint8_t* key_mask;  ///< [keys] of the sample, or null
  uint64_t sample = 0;      ///< index of the sample in the global batch
  int64_t index = 0;        ///< index of the head
};

/// Sizes of tiles and of a thread's work memory. A tile of weights is [keys, kQueries]: a vector register
/// holds a key's weights for several queries.
struct AttentionTiles {
  static constexpr int64_t kQueries = 32, kKeys = 128;
  /// Maximum number of floats in a vector register. Rows that are processed in vectors of columns are padded
  /// to a multiple of this number.
  static constexpr int64_t kLanes = 16;

  DTRAIN_HOST_DEVICE static int64_t padded(int64_t columns) {
    return (columns + kLanes - 1) / kLanes * kLanes;
  }
  DTRAIN_HOST_DEVICE static int64_t forward_floats(const AttentionSpec& spec) {
    return kQueries * (spec.key_dim + spec.value_dim) + 2 * kKeys * kQueries;
  }
  DTRAIN_HOST_DEVICE static int64_t backward_floats(const AttentionSpec& spec) {
    return kQueries * (2 * spec.key_dim + spec.value_dim) +
           (kQueries + kKeys) * (padded(spec.key_dim) + padded(spec.value_dim)) + 3 * kKeys * kQueries;
  }
};

/// Up to kQueries queries of a head.
struct AttentionQueries {
  AttentionHead head;
  int64_t first, count;  ///< index of the first query; number of queries
  float* dst;            ///< output of the head's first query
  float* logsumexp;      ///< [queries] of the head, or null
};

/// Up to kKeys keys of one head of the keys and values, with all queries that see these keys. The gradients
/// of the keys and values are written; the gradients of the queries are added to diff_query.
struct AttentionKeys {
  AttentionHead head;            ///< `query` and `index` belong to the first head of the group
  int64_t first, count;          ///< index of the first key; number of keys
  const float *dst, *diff_dst;   ///< arrays of the group's first head
  const float* logsumexp;        ///< [group, queries]
  float* diff_query;             ///< gradient of the queries of the group's first head
  int64_t diff_query_step;       ///< elements from one position to the next
  float *diff_key, *diff_value;  ///< gradients of the head's first key
};

}  // namespace dtrain::cpu
