// Losses and metrics that are computed for each element separately (elementwise).
#pragma once

#include "ops/cuda/read_ahead.h"
#include "ops/cuda/reductions/totals.h"
#include "ops/cuda/vector.h"
#include "ops/math/losses.h"

namespace dtrain::cuda {

/// The arrays that an elementwise loss or metric reads and writes. Their rows have `columns` elements.
/// Metrics have no diff_prediction.
template <class T>
struct ElementArrays {
  const T* prediction;
  const float* target;
  RowWeights weights = {};
  int64_t columns = 1;
  float scale = 0;
  const float* loss_scale = nullptr;
  T* diff_prediction = nullptr;
};

template <int N, class T, class Loss>
__device__ double elements_loss(const Loss& of, const ElementArrays<T>& arrays, float scale, int64_t i) {
  float values[N], targets[N];
  load<N>(arrays.prediction + i, values);
  load<N>(arrays.target + i, targets);
  const auto weight = [&](int k) {
    return arrays.weights.values ? arrays.weights.of(divide(i + k, arrays.columns).quotient) : 1.0f;
  };
  double sum = 0;
#pragma unroll
  for (int k = 0; k < N; ++k)
    sum += static_cast<double>(weight(k)) * static_cast<double>(of.value(values[k], targets[k]));
  if constexpr (requires { of.gradient(0.0f, 0.0f); }) {  // losses have a gradient; metrics do not
    if (arrays.diff_prediction) {
#pragma unroll
      for (int k = 0; k < N; ++k) values[k] = weight(k) * scale * of.gradient(values[k], targets[k]);
      store<N>(arrays.diff_prediction + i, values);
    }
  }
  return sum;
}

/// Maximum threads per block: with 1024, losses that compute powers would not have enough registers.
/// ThreadGroup::kMostThreads explains the second argument of __launch_bounds__.
inline constexpr int kMostElementThreads = 512;

template <int N, class T, class Loss>
__global__ void __launch_bounds__(kMostElementThreads, 1)
    elementwise_loss_kernel(Loss of, ElementArrays<T> arrays, int64_t n, Total total) {
  const float scale = arrays.loss_scale ? arrays.scale * *arrays.loss_scale : arrays.scale;
  double sum = 0;
  const int64_t vectors = n / N;
  for (int64_t i = thread_index(); i < vectors; i += thread_count()) {
    sum += elements_loss<N>(of, arrays, scale, i * N);
  }
  if constexpr (N > 1) {
    for (int64_t i = vectors * N + thread_index(); i < n; i += thread_count()) {
      sum += elements_loss<1>(of, arrays, scale, i);
    }
  }
  leave(total, sum);
}

/// Enqueues the loss or metric `of` over n elements.
template <class T, class Loss>
void launch_elements(const CudaContext& context, const Loss& of, const ElementArrays<T>& arrays, int64_t n,
                     const Total& total) {
  constexpr int kThreads = 256;
  with_width<T>(all_aligned(arrays.prediction, arrays.target, arrays.diff_prediction), [&](auto width) {
    constexpr int N = decltype(width)::value;
    const bool few = n <= int64_t{8} * N * kMostElementThreads;
    const unsigned blocks = few ? 1 : blocks_for((n + N - 1) / N, kThreads, context.multiprocessors());
    launch(elementwise_loss_kernel<N, T, Loss>, blocks, few ? kMostElementThreads : kThreads,
           context.compute(), of, arrays, n, total);
    finish(total, blocks, context.compute());
  });
}

}  // namespace dtrain::cuda
