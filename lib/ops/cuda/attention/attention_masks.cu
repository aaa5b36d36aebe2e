#include "ops/cuda/attention/attention_masks.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/reductions/reduce.h"

namespace dtrain::cuda {
namespace {

constexpr int kThreads = 256;

/// Returns the bias of a masked key. The number is far below the scores that occur in practice, so the weight
/// of the key is 0. It is finite, because a kernel may subtract it from itself, and infinity minus infinity
/// is NaN.
template <class T>
__device__ inline T hidden_score() {
  return from_float<T>(-1e9f);
}
template <>
__device__ inline __half hidden_score<__half>() {
  return from_float<__half>(-65504.0f);  // the lowest finite number
}

struct Min {
  __device__ int64_t operator()(int64_t a, int64_t b) const { return b < a ? b : a; }
};

/// Each block processes one sample.
template <class T>
__global__ void __launch_bounds__(kThreads)
    key_bias_kernel(const uint8_t* key_mask, T* bias, int64_t* first_keys, int64_t keys, int64_t stride) {
  const int64_t sample = blockIdx.x;
  int64_t first = keys;
  for (int64_t key = threadIdx.x; key < keys; key += kThreads) {
    const bool valid = !key_mask || key_mask[sample * keys + key] != 0;
    bias[sample * stride + key] = valid ? from_float<T>(0.0f) : hidden_score<T>();
    if (valid && key < first) first = key;
  }
  for (int64_t key = keys + threadIdx.x; key < stride; key += kThreads)
    bias[sample * stride + key] = from_float<T>(0.0f);
  first = block_reduce(first, Min{});
  if (threadIdx.x == 0) first_keys[sample] = first;
}

/// Sets dst to 0 and logsumexp to infinity for queries that see no valid key. With causal attention, these
/// are the queries before the first valid key; if a sample has no valid key, these are all queries. Each
/// block processes one sample.
template <class T>
__global__ void __launch_bounds__(kThreads)
    clear_blind_queries_kernel(AttentionSpec spec, const int64_t* first_keys, T* dst, float* logsumexp) {
  const int64_t sample = blockIdx.x, first = first_keys[sample], columns = spec.heads * spec.value_dim;
  int64_t blind = spec.causal ? first : 0;
  if (first == spec.keys || blind > spec.queries) blind = spec.queries;
  for (int64_t i = threadIdx.x; i < blind * columns; i += kThreads)
    dst[sample * spec.queries * columns + i] = from_float<T>(0.0f);
  if (!logsumexp) return;
  for (int64_t i = threadIdx.x; i < blind * spec.heads; i += kThreads)
    logsumexp[(sample * spec.heads + i / blind) * spec.queries + i % blind] = INFINITY;
}

}  // namespace

void key_bias(CudaOps& ops, const AttentionSpec& spec, const uint8_t* key_mask, void* bias,
              int64_t* first_keys) {
  with_type(ops.compute_type(), [&](auto type) {
    using T = decltype(type);
    launch(key_bias_kernel<T>, dim3(static_cast<unsigned>(spec.batch)), dim3(kThreads),
           ops.context().compute(), key_mask, static_cast<T*>(bias), first_keys, spec.keys,
           bias_stride(spec));
  });
}

void clear_blind_queries(CudaOps& ops, const AttentionSpec& spec, const int64_t* first_keys, void* dst,
                         float* logsumexp) {
  with_type(ops.compute_type(), [&](auto type) {
    using T = decltype(type);
    launch(clear_blind_queries_kernel<T>, dim3(static_cast<unsigned>(spec.batch)), dim3(kThreads),
           ops.context().compute(), spec, first_keys, static_cast<T*>(dst), logsumexp);
  });
}

}  // namespace dtrain::cuda
