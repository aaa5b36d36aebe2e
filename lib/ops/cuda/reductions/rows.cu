// Bias addition, column sums, and softmax.
#include <limits>

#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/reductions/column_sum.h"
#include "ops/cuda/reductions/rows.h"
#include "ops/cuda/vector.h"
#include "ops/math/functions.h"

namespace dtrain::cuda {
namespace {

template <class T>
struct AddBias {
  T* dst;
  const T *src, *bias;
  int64_t columns;

  /// If N is greater than 1, the number of columns must be a multiple of N.
  template <int N>
  __device__ void run(int64_t i) const {
    float values[N], biases[N];
    load(src + i, values);
    load(bias + divide(i, columns).rest, biases);
#pragma unroll
    for (int j = 0; j < N; ++j) values[j] += biases[j];
    store(dst + i, values);
  }
};

constexpr int64_t kLongRow = 1024;

template <class T, int N>
__global__ void __launch_bounds__(kRowThreads, 6)
    softmax_forward_kernel(const T* src, T* dst, int64_t rows, int64_t columns) {
  each_row(rows, [&](int64_t r) {
    const T* const x = src + r * columns;
    T* const y = dst + r * columns;
    float most = -std::numeric_limits<float>::infinity();
    each_column<N>(columns, [&](int64_t c) {
      float values[N];
      load(x + c, values);
      for (const float value : values) most = Max{}(most, value);
    });
    most = row_reduce(most, Max{});
    float total = 0.0f;
    each_column<N>(columns, [&](int64_t c) {
      float values[N];
      load(x + c, values);
      for (const float value : values) total += math::exp(value - most);
    });
    const float factor = 1.0f / row_reduce(total, Add{});
    each_column<N>(columns, [&](int64_t c) {
      float values[N];
      load(x + c, values);
      for (float& value : values) value = math::exp(value - most) * factor;
      store(y + c, values);
    });
  });
}

template <class T, int N>
__global__ void __launch_bounds__(kRowThreads, 6)
    softmax_backward_kernel(const T* dst, const T* diff_dst, T* diff_src, int64_t rows, int64_t columns) {
  each_row(rows, [&](int64_t r) {
    const T *const y = dst + r * columns, *const dy = diff_dst + r * columns;
    T* const dx = diff_src + r * columns;
    float dot = 0.0f;
    each_column<N>(columns, [&](int64_t c) {
      float outputs[N], diffs[N];
      load(y + c, outputs);
      load(dy + c, diffs);
#pragma unroll
      for (int j = 0; j < N; ++j) dot += outputs[j] * diffs[j];
    });
    dot = row_reduce(dot, Add{});
    each_column<N>(columns, [&](int64_t c) {
      float outputs[N], diffs[N];
      load(y + c, outputs);
      load(dy + c, diffs);
#pragma unroll
      for (int j = 0; j < N; ++j) diffs[j] = outputs[j] * (diffs[j] - dot);
      store(dx + c, diffs);
    });
  });
}

}  // namespace

void CudaOps::add_bias(void* dst, const void* src, const void* bias, int64_t rows, int64_t columns) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const bool vectors = columns % kVector<T> == 0 && all_aligned(dst, src, bias);
    for_each<kVector<T>>(
        context_, rows * columns, vectors,
        AddBias<T>{static_cast<T*>(dst), static_cast<const T*>(src), static_cast<const T*>(bias), columns});
  });
}

void CudaOps::column_sum(float* dst, const void* src, int64_t rows, int64_t columns) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    sum_columns(context_, Element<T>{static_cast<const T*>(src), columns}, {{dst}}, rows, columns);
  });
}

void CudaOps::softmax_forward(const void* src, void* dst, int64_t rows, int64_t columns) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const bool vectors = columns % kVector<T> == 0 && all_aligned(src, dst);
    launch_rows(context_, vectors ? softmax_forward_kernel<T, kVector<T>> : softmax_forward_kernel<T, 1>,
                columns >= kLongRow, rows, columns, static_cast<const T*>(src), static_cast<T*>(dst));
  });
}

void CudaOps::softmax_backward(const void* dst, const void* diff_dst, void* diff_src, int64_t rows,
                               int64_t columns) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const bool vectors = columns % kVector<T> == 0 && all_aligned(dst, diff_dst, diff_src);
    launch_rows(context_, vectors ? softmax_backward_kernel<T, kVector<T>> : softmax_backward_kernel<T, 1>,
                columns >= kLongRow, rows, columns, static_cast<const T*>(dst),
                static_cast<const T*>(diff_dst), static_cast<T*>(diff_src));
  });
}

}  // namespace dtrain::cuda
