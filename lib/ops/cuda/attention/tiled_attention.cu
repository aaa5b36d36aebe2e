// Attention, computed in tiles of queries and keys. In the forward pass, each block writes the results of a
// query tile. In the backward pass, one kernel writes the gradients of the queries, and a second kernel
// writes the gradients of the keys and values. Every result is written by only one block, so sums have the
// same order in every run. If the results have more columns than one block computes, blockIdx.y is the index
// of the column group.
#include <algorithm>

#include "ops/cuda/attention/tiled_attention.h"
#include "ops/cuda/attention/tiles.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/random.h"
#include "ops/cuda/reductions/reduce.h"
#include "ops/math/attention.h"

namespace dtrain::cuda {
namespace {

/// The arrays of a call.
template <class T>
struct AttentionArrays {
  const T *query, *key, *value;
  const uint8_t* key_mask;
  AttentionDropout dropout;
  T* dst;            ///< forward: written
  float* logsumexp;  ///< forward: written
  const T* diff_dst;
  float* dots;  ///< [batch, heads, queries]: dot products of dst and diff_dst
  T *diff_query, *diff_key, *diff_value;
};

/// One head of a sample: the offsets of its arrays, and the masks and dropout factors of its attention
/// weights.
template <class T>
struct AttentionPlace {
  const AttentionSpec& spec;
  const AttentionArrays<T>& arrays;
  int64_t sample, head;

  __device__ int64_t kv_head() const { return head / spec.group(); }
  __device__ float scale() const { return 1.0f / ::sqrtf(static_cast<float>(spec.key_dim)); }
  __device__ static int tile_rows(int64_t first, int64_t end) {
    return end - first < kTileSize ? static_cast<int>(end - first) : kTileSize;
  }

  __device__ int64_t query_at(int64_t query) const {
    return (sample * spec.queries + query) * spec.query_step() + head * spec.key_dim;
  }
  __device__ int64_t key_at(int64_t key) const {
    return (sample * spec.keys + key) * spec.key_step() + kv_head() * spec.key_dim;
  }
  __device__ int64_t value_at(int64_t key) const {
    return (sample * spec.keys + key) * spec.value_step() + kv_head() * spec.value_dim;
  }
  __device__ int64_t dst_at(int64_t query) const {
    return ((sample * spec.queries + query) * spec.heads + head) * spec.value_dim;
  }
  /// Returns the index of a query in arrays with one number per query.
  __device__ int64_t row_at(int64_t query) const {
    return (sample * spec.heads + head) * spec.queries + query;
  }

  __device__ TileRows<T> queries(int64_t first) const {
    return {arrays.query + query_at(first), spec.query_step(), tile_rows(first, spec.queries)};
  }
  __device__ TileRows<T> keys(int64_t first) const {
    return {arrays.key + key_at(first), spec.key_step(), tile_rows(first, spec.keys)};
  }
  __device__ TileRows<T> values(int64_t first) const {
    return {arrays.value + value_at(first), spec.value_step(), tile_rows(first, spec.keys)};
  }
  __device__ TileRows<T> diff_dst(int64_t first) const {
    return {arrays.diff_dst + dst_at(first), spec.heads * spec.value_dim, tile_rows(first, spec.queries)};
  }

  /// Returns the number of keys that at least one query of a tile sees, if there is no mask.
  __device__ int64_t visible_keys(int64_t first) const {
    const int64_t visible = spec.first_query + first + tile_rows(first, spec.queries);
    return spec.causal && visible < spec.keys ? visible : spec.keys;
  }
  __device__ bool sees(int64_t query, int64_t key) const {
    return query < spec.queries && key < spec.keys && (!spec.causal || key <= spec.first_query + query) &&
           (!arrays.key_mask || arrays.key_mask[sample * spec.keys + key] != 0);
  }
  /// Sets factors[k] to the factor by which dropout multiplies the weight of key 4 * key_block + k.
  __device__ void get_factors(int64_t query, int64_t key_block, float (&factors)[4]) const {
    const AttentionDropout& dropout = arrays.dropout;
    const auto row = static_cast<uint64_t>((spec.first_query + query) * spec.heads + head);
    const Philox::Block words = math::attention_words(dropout.random, *dropout.step, row,
                                                      dropout.first_sample + static_cast<uint64_t>(sample),
                                                      static_cast<uint64_t>(key_block));
#pragma unroll
    for (int k = 0; k < 4; ++k)
      factors[k] = uniform01(word_of(words, k)) >= spec.dropout ? 1.0f / (1.0f - spec.dropout) : 0.0f;
  }
  /// If there is dropout, writes its factors to the rows of this warp: tile.v[i][j] belongs to query `query`
  /// + i and key `key` + j. Each thread writes four factors, which come from one block of random numbers.
  __device__ void write_factors(int64_t query, int64_t key, SharedTile& tile) const {
    if (spec.dropout <= 0.0f) return;
    const int first = tile_lane() * 4;
    float factors[4];
    get_factors(query + tile_row(), key / 4 + tile_lane(), factors);
#pragma unroll
    for (int k = 0; k < 4; ++k) tile.v[tile_row()][first + k] = factors[k];
    __syncwarp();
  }
  /// Like write_factors(), but with keys and queries exchanged: tile.v[i][j] belongs to key `key` + i and
  /// query `query` + j.
  __device__ void write_factors_of_keys(int64_t query, int64_t key, SharedTile& tile) const {
    if (spec.dropout <= 0.0f) return;
    const int lane = static_cast<int>(threadIdx.x) % kWarp, first = static_cast<int>(threadIdx.x) / kWarp * 4;
    float factors[4];
    get_factors(query + lane, key / 4 + first / 4, factors);
#pragma unroll
    for (int k = 0; k < 4; ++k) tile.v[first + k][lane] = factors[k];
    __syncwarp();
  }
  /// Returns a factor that write_factors() or write_factors_of_keys() has written, for the row of this
  /// thread.
  __device__ float factor(const SharedTile& tile, int column) const {
    return spec.dropout > 0.0f ? tile.v[tile_row()][column] : 1.0f;
  }
};
static_assert(kWarp / kTileLanes == 4 && kTileSize == kWarp,
              "the rows of a warp must have the four keys of a block of random numbers");

/// Minimum number of blocks per multiprocessor (__launch_bounds__). With the values below, no kernel instance
/// spills registers.
__host__ __device__ constexpr int forward_blocks(int columns) {
  return columns <= 2 * kTilePart ? 3 : 2;
}
inline constexpr int kQueryBlocks = 3, kKeyBlocks = 2;

template <int kColumns, class T>
__global__ void __launch_bounds__(kTileThreads, forward_blocks(kColumns))
    attention_forward_kernel(AttentionSpec spec, AttentionArrays<T> arrays, int64_t tiles) {
  __shared__ SharedTile left, right, weights;
  const int64_t index = blockIdx.x, first = index % tiles * kTileSize,
                column = int64_t{blockIdx.y} * kColumns * kTileLanes;
  const AttentionPlace<T> place{spec, arrays, index / tiles / spec.heads, index / tiles % spec.heads};
  const int64_t query = first + tile_row(), visible = place.visible_keys(first);
  const float scale = place.scale();
  math::OnlineSoftmax softmax;
  float sums[kColumns] = {};
  for (int64_t key = 0; key < visible; key += kTileSize) {
    float scores[kTilePart];
    multiply_rows(place.queries(first), place.keys(key), spec.key_dim, left, right, scores);
    float largest = softmax.largest;
#pragma unroll
    for (int k = 0; k < kTilePart; ++k) {
      scores[k] = place.sees(query, key + tile_lane() + k * kTileLanes) ? scores[k] * scale : -INFINITY;
      largest = Max{}(largest, scores[k]);
    }
    largest = lanes_reduce(largest, Max{});
    const float factor = softmax.factor(largest);
    softmax.largest = largest;
    float total = 0.0f;
    place.write_factors(first, key, weights);
#pragma unroll
    for (int k = 0; k < kTilePart; ++k) {
      const int j = tile_lane() + k * kTileLanes;
      const float weight = math::exp(scores[k] - softmax.shift());
      total += weight;
      weights.v[tile_row()][j] = weight * place.factor(weights, j);
    }
    softmax.sum = softmax.sum * factor + lanes_reduce(total, Add{});
#pragma unroll
    for (int i = 0; i < kColumns; ++i) sums[i] *= factor;
    add_weighted_rows(weights, place.values(key), column, spec.value_dim, right, sums);
  }
  if (query >= spec.queries) return;
  store_columns(arrays.dst + place.dst_at(query), column, spec.value_dim, softmax.scale(), sums);
  if (arrays.logsumexp && tile_lane() == 0 && blockIdx.y == 0)
    arrays.logsumexp[place.row_at(query)] = softmax.logsumexp();
}

/// Writes the gradients of a tile of queries, and the dot products of dst and diff_dst.
template <int kColumns, class T>
__global__ void __launch_bounds__(kTileThreads, kQueryBlocks)
    attention_backward_queries_kernel(AttentionSpec spec, AttentionArrays<T> arrays, int64_t tiles) {
  __shared__ SharedTile left, right, weights;
  const int64_t index = blockIdx.x, first = index % tiles * kTileSize,
                column = int64_t{blockIdx.y} * kColumns * kTileLanes;
  const AttentionPlace<T> place{spec, arrays, index / tiles / spec.heads, index / tiles % spec.heads};
  const int64_t query = first + tile_row(), visible = place.visible_keys(first);
  const bool exists = query < spec.queries;
  float dot = 0.0f;
  for (int64_t c = tile_lane(); exists && c < spec.value_dim; c += kTileLanes)
    dot += to_float(arrays.dst[place.dst_at(query) + c]) * to_float(arrays.diff_dst[place.dst_at(query) + c]);
  dot = lanes_reduce(dot, Add{});
  if (exists && tile_lane() == 0 && blockIdx.y == 0) arrays.dots[place.row_at(query)] = dot;
  const float logsumexp = exists ? arrays.logsumexp[place.row_at(query)] : INFINITY, scale = place.scale();
  float sums[kColumns] = {};
  for (int64_t key = 0; key < visible; key += kTileSize) {
    float scores[kTilePart], diff[kTilePart];
    multiply_rows(place.queries(first), place.keys(key), spec.key_dim, left, right, scores);
    multiply_rows(place.diff_dst(first), place.values(key), spec.value_dim, left, right, diff);
    place.write_factors(first, key, weights);
#pragma unroll
    for (int k = 0; k < kTilePart; ++k) {
      const int j = tile_lane() + k * kTileLanes;
      float gradient = 0.0f;
      if (place.sees(query, key + j))
        gradient = math::exp(scores[k] * scale - logsumexp) * (diff[k] * place.factor(weights, j) - dot);
      weights.v[tile_row()][j] = gradient;
    }
    add_weighted_rows(weights, place.keys(key), column, spec.key_dim, right, sums);
  }
  if (exists) store_columns(arrays.diff_query + place.query_at(query), column, spec.key_dim, scale, sums);
}

/// Writes the gradients of a tile of keys and values, from `dots`.
template <int kColumns, class T>
__global__ void __launch_bounds__(kTileThreads, kKeyBlocks)
    attention_backward_keys_kernel(AttentionSpec spec, AttentionArrays<T> arrays, int64_t tiles) {
  __shared__ SharedTile left, right, weights, diff_weights;
  const int64_t index = blockIdx.x, first = index % tiles * kTileSize,
                column = int64_t{blockIdx.y} * kColumns * kTileLanes;
  AttentionPlace<T> place{spec, arrays, index / tiles / spec.kv_heads,
                          index / tiles % spec.kv_heads * spec.group()};
  const int64_t key = first + tile_row(), end = place.head + spec.group();
  // Index of the first query that sees a key of this tile. The loop begins with the tile that contains this
  // query.
  const int64_t hidden = spec.causal && first > spec.first_query ? first - spec.first_query : 0;
  const float scale = place.scale();
  float key_sums[kColumns] = {}, value_sums[kColumns] = {};
  for (; place.head < end; ++place.head) {
    for (int64_t query = hidden / kTileSize * kTileSize; query < spec.queries; query += kTileSize) {
      float scores[kTilePart], diff[kTilePart];
      multiply_rows(place.keys(first), place.queries(query), spec.key_dim, left, right, scores);
      multiply_rows(place.values(first), place.diff_dst(query), spec.value_dim, left, right, diff);
      place.write_factors_of_keys(query, first, weights);
#pragma unroll
      for (int k = 0; k < kTilePart; ++k) {
        const int i = tile_lane() + k * kTileLanes;
        float weight = 0.0f, gradient = 0.0f;
        if (place.sees(query + i, key)) {
          const int64_t row = place.row_at(query + i);
          const float factor = place.factor(weights, i);
          weight = math::exp(scores[k] * scale - arrays.logsumexp[row]);
          gradient = weight * (diff[k] * factor - arrays.dots[row]);
          weight *= factor;
        }
        weights.v[tile_row()][i] = weight;
        diff_weights.v[tile_row()][i] = gradient;
      }
      add_weighted_rows(weights, place.diff_dst(query), column, spec.value_dim, right, value_sums);
      add_weighted_rows(diff_weights, place.queries(query), column, spec.key_dim, right, key_sums);
    }
  }
  if (key >= spec.keys) return;
  place.head = end - 1;
  store_columns(arrays.diff_key + place.key_at(key), column, spec.key_dim, scale, key_sums);
  store_columns(arrays.diff_value + place.value_at(key), column, spec.value_dim, 1.0f, value_sums);
}

/// Calls use(n) with a compile-time constant n, the number of columns that each thread computes. n is chosen
/// for results with `columns` columns.
template <class Use>
void with_tile_columns(int64_t columns, Use&& use) {
  if (columns <= kTileSize) return use(std::integral_constant<int, kTilePart>{});
  if (columns <= 2 * kTileSize) return use(std::integral_constant<int, 2 * kTilePart>{});
  use(std::integral_constant<int, 4 * kTilePart>{});
}

template <class T>
class TiledAttention final : public Attention {
 public:
  TiledAttention(CudaContext& context, const AttentionSpec& spec) : context_(context), spec_(spec) {}

  size_t scratch_bytes() const override {
    return spec_.training ? static_cast<size_t>(spec_.batch * spec_.heads * spec_.queries) * sizeof(float)
                          : 0;
  }

  void forward(const ForwardArguments& args) override {
    AttentionArrays<T> arrays = arrays_of(args);
    arrays.dst = static_cast<T*>(args.dst);
    arrays.logsumexp = args.logsumexp;
    with_tile_columns(spec_.value_dim, [&](auto columns) {
      run(attention_forward_kernel<columns(), T>, spec_.heads, spec_.queries, spec_.value_dim, columns(),
          arrays);
    });
  }

  void backward(const BackwardArguments& args) override {
    AttentionArrays<T> arrays = arrays_of(args);
    arrays.dst = static_cast<T*>(const_cast<void*>(args.dst));  // the backward pass only reads this array
    arrays.logsumexp = const_cast<float*>(args.logsumexp);      // the backward pass only reads this array
    arrays.diff_dst = static_cast<const T*>(args.diff_dst);
    arrays.dots = static_cast<float*>(args.scratch);
    arrays.diff_query = static_cast<T*>(args.diff_query);
    arrays.diff_key = static_cast<T*>(args.diff_key);
    arrays.diff_value = static_cast<T*>(args.diff_value);
    with_tile_columns(spec_.key_dim, [&](auto columns) {
      run(attention_backward_queries_kernel<columns(), T>, spec_.heads, spec_.queries, spec_.key_dim,
          columns(), arrays);
    });
    const int64_t most = std::max(spec_.key_dim, spec_.value_dim);
    with_tile_columns(most, [&](auto columns) {
      run(attention_backward_keys_kernel<columns(), T>, spec_.kv_heads, spec_.keys, most, columns(), arrays);
    });
  }

 private:
  using Kernel = void (*)(AttentionSpec, AttentionArrays<T>, int64_t);

  template <class Arguments>
  static AttentionArrays<T> arrays_of(const Arguments& args) {
    return {static_cast<const T*>(args.query),
            static_cast<const T*>(args.key),
            static_cast<const T*>(args.value),
            args.key_mask,
            args.dropout,
            nullptr,
            nullptr,
            nullptr,
            nullptr,
            nullptr,
            nullptr,
            nullptr};
  }

  /// Enqueues a kernel. Each block writes one tile of the result, which has `rows` rows and `columns` columns
  /// for each of the `heads` heads of a sample.
  void run(Kernel kernel, int64_t heads, int64_t rows, int64_t columns, int thread_columns,
           const AttentionArrays<T>& arrays) {
    const int64_t tiles = (rows + kTileSize - 1) / kTileSize,
                  block_columns = int64_t{thread_columns} * kTileLanes;
    const dim3 grid(static_cast<unsigned>(spec_.batch * heads * tiles),
                    static_cast<unsigned>((columns + block_columns - 1) / block_columns));
    launch(kernel, grid, dim3(kTileThreads), context_.compute(), spec_, arrays, tiles);
  }

  CudaContext& context_;
  AttentionSpec spec_;
};

}  // namespace

std::unique_ptr<Attention> tiled_attention(CudaOps& ops, const AttentionSpec& spec) {
  std::unique_ptr<Attention> attention;
  with_type(ops.compute_type(), [&](auto type) {
    attention = std::make_unique<TiledAttention<decltype(type)>>(ops.context(), spec);
  });
  return attention;
}

}  // namespace dtrain::cuda
