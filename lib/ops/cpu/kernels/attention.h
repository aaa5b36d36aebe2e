// Attention for one tile of queries and keys. Part of kernels/all.h. All matrix products are computed by
// multiply_tile(). One SIMD vector holds either several queries or several elements of a head, and no sum is
// computed across the queries of a tile in the forward pass. Therefore, the result of a query depends only on
// this query and its keys, not on the other queries of the tile.
#pragma once

#include "ops/cpu/kernels/table.h"
#include "ops/cpu/kernels/tile_product.h"
#include "ops/math/attention.h"

namespace dtrain::cpu {
namespace {

constexpr int64_t kTileQueries = AttentionTiles::kQueries, kTileKeys = AttentionTiles::kKeys;

/// One number per query of a tile.
struct TileRow {
  alignas(64) float v[kTileQueries];
};

/// Transposes `count` rows of `columns` elements: dst[c, i] = scale * src[i, c]. The columns of dst from
/// `count` on are set to 0.
void transpose_queries(const float* src, int64_t step, int64_t count, int64_t columns, float scale,
                       float* dst) {
  for (int64_t c = 0; c < columns; ++c) {
    float* const to = dst + c * kTileQueries;
    for (int64_t i = 0; i < count; ++i) to[i] = src[i * step + c] * scale;
    for (int64_t i = count; i < kTileQueries; ++i) to[i] = 0.0f;
  }
}

/// Copies `count` rows of `columns` elements, multiplied by `scale`. A row of dst has
/// AttentionTiles::padded(columns) elements; the padding is set to 0.
void copy_padded(const float* src, int64_t step, int64_t count, int64_t columns, float scale, float* dst) {
  const int64_t padded = AttentionTiles::padded(columns);
  for (int64_t i = 0; i < count; ++i) {
    const float* const from = src + i * step;
    float* const to = dst + i * padded;
#pragma omp simd
    for (int64_t c = 0; c < columns; ++c) to[c] = from[c] * scale;
    for (int64_t c = columns; c < padded; ++c) to[c] = 0.0f;
  }
}

/// Position of a tile of queries and keys.
struct TilePlace {
  int64_t query, query_count, key, key_count;  ///< first query, number of queries, first key, number of keys

  /// Returns the number of keys of the tile that at least one query of the tile sees.
  static int64_t visible_keys(const AttentionSpec& spec, int64_t query, int64_t query_count, int64_t key,
                              int64_t key_count) {
    const int64_t visible = spec.first_query + query + query_count - key;
    return spec.causal && visible < key_count ? visible : key_count;
  }
};

/// Calls use(j, hidden) for each key j of the tile that the first `hidden` queries of the tile do not see.
template <class Use>
void each_hidden(const AttentionSpec& spec, const uint8_t* key_mask, const TilePlace& place, Use&& use) {
  for (int64_t j = 0; j < place.key_count; ++j) {
    int64_t first = spec.causal ? place.key + j - spec.first_query - place.query : 0;
    if (key_mask && !key_mask[place.key + j]) first = kTileQueries;
    if (first > 0) use(j, first < kTileQueries ? first : kTileQueries);
  }
}

/// Writes the dropout factors of a tile: 0 or 1 / (1 - rate).
void dropout_factors(const AttentionSpec& spec, const AttentionHead& head, const AttentionDropout& dropout,
                     const TilePlace& place, float* factors) {
  const float rate = spec.dropout, kept = 1.0f / (1.0f - rate);
  const auto heads = static_cast<uint64_t>(spec.heads);
  const auto row =
      static_cast<uint64_t>(spec.first_query + place.query) * heads + static_cast<uint64_t>(head.index);
  const uint64_t step = *dropout.step;
  for (int64_t j = 0; j < place.key_count; j += 4) {
    float* const to = factors + j * kTileQueries;
#pragma omp simd
    for (int64_t i = 0; i < kTileQueries; ++i) {
      const Philox::Block words =
          math::attention_words(dropout.random, step, row + static_cast<uint64_t>(i) * heads, head.sample,
                                static_cast<uint64_t>(place.key + j) / 4);
      to[i] = uniform01(words.v[0]) >= rate ? kept : 0.0f;
      to[i + kTileQueries] = uniform01(words.v[1]) >= rate ? kept : 0.0f;
      to[i + 2 * kTileQueries] = uniform01(words.v[2]) >= rate ? kept : 0.0f;
      to[i + 3 * kTileQueries] = uniform01(words.v[3]) >= rate ? kept : 0.0f;
    }
  }
}

/// Replaces a tile's scores by exp(score - largest), updates `largest` and `sum`, and writes the factors by
/// which the sums of earlier tiles must be multiplied.
void update_softmax(float* weights, int64_t keys, TileRow& largest, TileRow& sum, TileRow& factor) {
  TileRow next = largest, shift;
  for (int64_t j = 0; j < keys; ++j) {
    const float* const w = weights + j * kTileQueries;
#pragma omp simd
    for (int64_t i = 0; i < kTileQueries; ++i) next.v[i] = next.v[i] < w[i] ? w[i] : next.v[i];
  }
#pragma omp simd
  for (int64_t i = 0; i < kTileQueries; ++i) {
    factor.v[i] = math::OnlineSoftmax{largest.v[i], 0.0f}.factor(next.v[i]);
    shift.v[i] = math::OnlineSoftmax{next.v[i], 0.0f}.shift();
    sum.v[i] *= factor.v[i];
  }
  for (int64_t j = 0; j < keys; ++j) {
    float* const w = weights + j * kTileQueries;
#pragma omp simd
    for (int64_t i = 0; i < kTileQueries; ++i) {
      w[i] = math::exp(w[i] - shift.v[i]);
      sum.v[i] += w[i];
    }
  }
  largest = next;
}

/// Multiplies rows of kTileQueries elements by a row of factors.
void scale_queries(float* rows, int64_t count, const TileRow& factor) {
  for (int64_t c = 0; c < count; ++c) {
    float* const to = rows + c * kTileQueries;
#pragma omp simd
    for (int64_t i = 0; i < kTileQueries; ++i) to[i] *= factor.v[i];
  }
}

void attention_forward(const AttentionSpec& spec, const AttentionDropout& dropout,
                       const AttentionQueries& part, float* work) {
  const AttentionHead& head = part.head;
  const int64_t key_step = spec.key_step(), value_step = spec.value_step();
  float* const query = work;
  float* const sums = query + spec.key_dim * kTileQueries;  // [value_dim, kTileQueries]
  float* const weights = sums + spec.value_dim * kTileQueries;
  float* const factors = weights + kTileKeys * kTileQueries;
  TileRow largest, sum, factor;
  for (int64_t i = 0; i < kTileQueries; ++i) largest.v[i] = -INFINITY, sum.v[i] = 0.0f;
  const float scale = 1.0f / ::sqrtf(static_cast<float>(spec.key_dim));
  transpose_queries(head.query + part.first * spec.query_step(), spec.query_step(), part.count, spec.key_dim,
                    scale, query);
  const int64_t visible = TilePlace::visible_keys(spec, part.first, part.count, 0, spec.keys);
  for (int64_t first = 0; first < visible; first += kTileKeys) {
    const int64_t count = visible - first < kTileKeys ? visible - first : kTileKeys;
    const TilePlace place{part.first, part.count, first, count};
    multiply_tile({count, kTileQueries, spec.key_dim, head.key + first * key_step, key_step, 1, query,
                   kTileQueries, weights, kTileQueries});
    each_hidden(spec, head.key_mask, place, [&](int64_t j, int64_t hidden) {
      for (int64_t i = 0; i < hidden; ++i) weights[j * kTileQueries + i] = -INFINITY;
    });
    update_softmax(weights, count, largest, sum, factor);
    if (first > 0) scale_queries(sums, spec.value_dim, factor);
    if (spec.dropout > 0) {
      dropout_factors(spec, head, dropout, place, factors);
#pragma omp simd
      for (int64_t i = 0; i < count * kTileQueries; ++i) weights[i] *= factors[i];
    }
    multiply_tile({spec.value_dim, kTileQueries, count, head.value + first * value_step, 1, value_step,
                   weights, kTileQueries, sums, kTileQueries, first > 0});
  }
  const int64_t dst_step = spec.heads * spec.value_dim;
  for (int64_t i = 0; i < part.count; ++i) {
    const math::OnlineSoftmax softmax{largest.v[i], sum.v[i]};
    if (part.logsumexp) part.logsumexp[part.first + i] = softmax.logsumexp();
    factor.v[i] = softmax.scale();
  }
  float* const dst = part.dst + part.first * dst_step;
  for (int64_t c = 0; c < spec.value_dim; ++c)
    for (int64_t i = 0; i < part.count; ++i) dst[i * dst_step + c] = sums[c * kTileQueries + i] * factor.v[i];
}

/// A thread's work memory in attention_backward().
struct BackwardWork {
  BackwardWork(const AttentionSpec& spec, float* work) {
    const int64_t keys = AttentionTiles::padded(spec.key_dim),
                  values = AttentionTiles::padded(spec.value_dim);
    const auto next = [&](int64_t floats) {
      float* const begin = work;
      work += floats;
      return begin;
    };
    query = next(spec.key_dim * kTileQueries);
    diff_query = next(spec.key_dim * kTileQueries);
    diff_dst = next(spec.value_dim * kTileQueries);
    query_rows = next(kTileQueries * keys);
    diff_dst_rows = next(kTileQueries * values);
    diff_key = next(kTileKeys * keys);
    diff_value = next(kTileKeys * values);
    weights = next(kTileKeys * kTileQueries);
    diff_weights = next(kTileKeys * kTileQueries);
    factors = next(kTileKeys * kTileQueries);
  }

  float *query, *diff_query, *diff_dst;  ///< [key_dim or value_dim, kTileQueries]
  float *query_rows, *diff_dst_rows;     ///< [kTileQueries, padded]
  float *diff_key, *diff_value;          ///< [kTileKeys, padded]
  float *weights, *diff_weights, *factors;
};

/// Replaces scores by weights (in `weights`), and weight gradients by score gradients (in `diff_weights`).
void scores_backward(const float* logsumexp, const float* dots, const float* factors, int64_t n,
                     float* weights, float* diff_weights) {
  for (int64_t j = 0; j < n; ++j) {
    float *const w = weights + j * kTileQueries, *const d = diff_weights + j * kTileQueries;
    if (factors) {
      const float* const f = factors + j * kTileQueries;
#pragma omp simd
      for (int64_t i = 0; i < kTileQueries; ++i) {
        const float weight = math::exp(w[i] - logsumexp[i]);
        d[i] = weight * (d[i] * f[i] - dots[i]);
        w[i] = weight * f[i];
      }
    } else {
#pragma omp simd
      for (int64_t i = 0; i < kTileQueries; ++i) {
        w[i] = math::exp(w[i] - logsumexp[i]);
        d[i] = w[i] * (d[i] - dots[i]);
      }
    }
  }
}

/// Adds the contributions of one tile of queries to the gradients. `member` is the index of the query head
/// within its group, which is the set of query heads that share the keys and values.
void attention_backward_tile(const AttentionSpec& spec, const AttentionDropout& dropout,
                             const AttentionKeys& part, int64_t member, const TilePlace& place,
                             const BackwardWork& work) {
  const int64_t query_step = spec.query_step(), dst_step = spec.heads * spec.value_dim;
  const int64_t key_step = spec.key_step(), value_step = spec.value_step();
  const int64_t count = place.query_count, keys = place.key_count;
  AttentionHead head = part.head;
  head.index += member;
  const float* const query = head.query + member * spec.key_dim + place.query * query_step;
  const int64_t dst_at = member * spec.value_dim + place.query * dst_step;
  const float *const dst = part.dst + dst_at, *const diff_dst = part.diff_dst + dst_at;
  const float scale = 1.0f / ::sqrtf(static_cast<float>(spec.key_dim));
  transpose_queries(query, query_step, count, spec.key_dim, scale, work.query);
  copy_padded(query, query_step, count, spec.key_dim, scale, work.query_rows);
  transpose_queries(diff_dst, dst_step, count, spec.value_dim, 1.0f, work.diff_dst);
  copy_padded(diff_dst, dst_step, count, spec.value_dim, 1.0f, work.diff_dst_rows);

  TileRow logsumexp, dots;
  for (int64_t i = 0; i < kTileQueries; ++i) {
    logsumexp.v[i] = i < count ? part.logsumexp[member * spec.queries + place.query + i] : INFINITY;
    float dot = 0.0f;
    if (i < count) {
#pragma omp simd reduction(+ : dot)
      for (int64_t c = 0; c < spec.value_dim; ++c) dot += dst[i * dst_step + c] * diff_dst[i * dst_step + c];
    }
    dots.v[i] = dot;
  }
  const float *const key = head.key + place.key * key_step, *const value =
                                                                head.value + place.key * value_step;
  multiply_tile({keys, kTileQueries, spec.key_dim, key, key_step, 1, work.query, kTileQueries, work.weights,
                 kTileQueries});
  multiply_tile({keys, kTileQueries, spec.value_dim, value, value_step, 1, work.diff_dst, kTileQueries,
                 work.diff_weights, kTileQueries});
  each_hidden(spec, head.key_mask, place, [&](int64_t j, int64_t hidden) {
    for (int64_t i = 0; i < hidden; ++i) work.weights[j * kTileQueries + i] = -INFINITY;
  });
  if (spec.dropout > 0) dropout_factors(spec, head, dropout, place, work.factors);
  scores_backward(logsumexp.v, dots.v, spec.dropout > 0 ? work.factors : nullptr, keys, work.weights,
                  work.diff_weights);

  const int64_t key_columns = AttentionTiles::padded(spec.key_dim),
                value_columns = AttentionTiles::padded(spec.value_dim);
  multiply_tile({keys, value_columns, count, work.weights, kTileQueries, 1, work.diff_dst_rows, value_columns,
                 work.diff_value, value_columns, true});
  multiply_tile({keys, key_columns, count, work.diff_weights, kTileQueries, 1, work.query_rows, key_columns,
                 work.diff_key, key_columns, true});
  multiply_tile({spec.key_dim, kTileQueries, keys, key, 1, key_step, work.diff_weights, kTileQueries,
                 work.diff_query, kTileQueries});
  float* const diff_query = part.diff_query + member * spec.key_dim + place.query * part.diff_query_step;
  for (int64_t c = 0; c < spec.key_dim; ++c)
    for (int64_t i = 0; i < count; ++i)
      diff_query[i * part.diff_query_step + c] += work.diff_query[c * kTileQueries + i] * scale;
}

void attention_backward(const AttentionSpec& spec, const AttentionDropout& dropout, const AttentionKeys& part,
                        float* memory) {
  const BackwardWork work(spec, memory);
  const int64_t key_columns = AttentionTiles::padded(spec.key_dim),
                value_columns = AttentionTiles::padded(spec.value_dim);
  for (int64_t i = 0; i < part.count * key_columns; ++i) work.diff_key[i] = 0.0f;
  for (int64_t i = 0; i < part.count * value_columns; ++i) work.diff_value[i] = 0.0f;
  for (int64_t member = 0; member < spec.group(); ++member) {
    for (int64_t query = 0; query < spec.queries; query += kTileQueries) {
      const int64_t count = spec.queries - query < kTileQueries ? spec.queries - query : kTileQueries;
      const int64_t keys = TilePlace::visible_keys(spec, query, count, part.first, part.count);
      if (keys > 0)
        attention_backward_tile(spec, dropout, part, member, {query, count, part.first, keys}, work);
    }
  }
  const auto write = [&](const float* rows, int64_t padded, int64_t columns, float* dst, int64_t step) {
    for (int64_t j = 0; j < part.count; ++j) {
#pragma omp simd
      for (int64_t c = 0; c < columns; ++c) dst[(part.first + j) * step + c] = rows[j * padded + c];
    }
  };
  write(work.diff_key, key_columns, spec.key_dim, part.diff_key, spec.key_step());
  write(work.diff_value, value_columns, spec.value_dim, part.diff_value, spec.value_step());
}

}  // namespace
}  // namespace dtrain::cpu
