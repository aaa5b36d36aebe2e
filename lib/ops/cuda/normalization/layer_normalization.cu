// Layer normalization of rows. The forward pass reads memory once; the backward pass reads it once for the
// parameters' gradients and once for the input's gradient.
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/normalization/row_part.h"
#include "ops/cuda/reductions/column_sum.h"
#include "ops/cuda/reductions/rows.h"
#include "ops/cuda/vector.h"

namespace dtrain::cuda {
namespace {

template <class T, int N, int kHeld>
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    layer_normalization_forward_kernel(const T* src, const float* gamma, const float* beta, float epsilon,
                                       T* dst, float* mean, float* inverse_deviation, int64_t rows,
                                       int64_t columns) {
  const float share = 1.0f / static_cast<float>(columns);
  each_row(rows, [&](int64_t r) {
    RowPart<N, kHeld, T> x(src + r * columns, columns);
    T* const y = dst + r * columns;
    float total = 0.0f, squares = 0.0f;
    x.each([&](int64_t, const Raw<N, T>& values) {
#pragma unroll
      for (int j = 0; j < N; ++j) total += values[j];
    });
    const float m = row_reduce(total, Add{}) * share;
    x.forget_floats();
    x.each([&](int64_t, const Raw<N, T>& values) {
#pragma unroll
      for (int j = 0; j < N; ++j) squares += (values[j] - m) * (values[j] - m);
    });
    const float inverse = 1.0f / ::sqrtf(row_reduce(squares, Add{}) * share + epsilon);
    if (threadIdx.x == 0) {
      mean[r] = m;
      inverse_deviation[r] = inverse;
    }
    x.forget_floats();
    x.each([&](int64_t c, const Raw<N, T>& values) {
      float results[N], scales[N], offsets[N];
      load_or(1.0f, gamma, c, scales);
      load_or(0.0f, beta, c, offsets);
#pragma unroll
      for (int j = 0; j < N; ++j) results[j] = (values[j] - m) * inverse * scales[j] + offsets[j];
      store(y + c, results);
    });
  });
}

template <class T, int N, int kHeld>
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    layer_normalization_backward_kernel(const T* src, const float* gamma, const float* mean,
                                        const float* inverse_deviation, const T* diff_dst, T* diff_src,
                                        int64_t rows, int64_t columns) {
  const float share = 1.0f / static_cast<float>(columns);
  each_row(rows, [&](int64_t r) {
    RowPart<N, kHeld, T> x(src + r * columns, columns), dy(diff_dst + r * columns, columns);
    T* const dx = diff_src + r * columns;
    const float m = mean[r], inverse = inverse_deviation[r];
    float total = 0.0f, dot = 0.0f;
    // Computes the gradients of the normalized values: diff_dst times gamma.
    const auto load_gradients = [&](int64_t c, const Raw<N, T>& diffs, float(&gradients)[N]) {
      load_or(1.0f, gamma, c, gradients);
#pragma unroll
      for (int j = 0; j < N; ++j) gradients[j] *= diffs[j];
    };
    x.each_with(dy, [&](int64_t c, const Raw<N, T>& values, const Raw<N, T>& diffs) {
      float gradients[N];
      load_gradients(c, diffs, gradients);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        total += gradients[j];
        dot += gradients[j] * (values[j] - m);
      }
    });
    total = row_reduce(total, Add{}) * share;
    dot = row_reduce(dot, Add{}) * share * inverse * inverse;
    x.forget_floats();
    dy.forget_floats();
    x.each_with(dy, [&](int64_t c, const Raw<N, T>& values, const Raw<N, T>& diffs) {
      float gradients[N];
      load_gradients(c, diffs, gradients);
#pragma unroll
      for (int j = 0; j < N; ++j) gradients[j] = inverse * (gradients[j] - total - (values[j] - m) * dot);
      store(dx + c, gradients);
    });
  });
}

/// Terms whose column sums are the gradients of gamma and beta.
template <class T>
struct ParameterGradients {
  static constexpr int kSums = 2;
  const T *src, *diff_dst;
  const float *mean, *inverse_deviation;
  int64_t columns;
  __device__ Floats<2> load(int64_t r, int64_t c) const {
    const float distance = to_float(src[r * columns + c]) - mean[r];
    const float diff = to_float(diff_dst[r * columns + c]);
    return {diff * distance * inverse_deviation[r], diff};
  }
  __device__ Floats<2> value(int64_t, int64_t, const Floats<2>& loaded) const { return loaded; }
};

}  // namespace

void CudaOps::layer_normalization_forward(const LayerNormalizationArguments& args) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const bool vectors =
        args.columns % kVector<T> == 0 && all_aligned(args.src, args.dst, args.gamma, args.beta);
    with_row_parts<T>(vectors, args.columns, [&](auto width, auto held, bool long_rows) {
      launch_rows(context_,
                  layer_normalization_forward_kernel<T, decltype(width)::value, decltype(held)::value>,
                  long_rows, args.rows, args.columns, static_cast<const T*>(args.src), args.gamma, args.beta,
                  args.epsilon, static_cast<T*>(args.dst), args.mean, args.inverse_deviation);
    });
  });
}

void CudaOps::layer_normalization_backward(const LayerNormalizationBackwardArguments& args) {
  const int64_t rows = args.rows, columns = args.columns;
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const T *const x = static_cast<const T*>(args.src), *const dy = static_cast<const T*>(args.diff_dst);
    // The parameters' gradients are computed first, because diff_src may be diff_dst.
    if (args.diff_gamma || args.diff_beta) {
      sum_columns(context_, ParameterGradients<T>{x, dy, args.mean, args.inverse_deviation, columns},
                  {{args.diff_gamma, args.diff_beta}}, rows, columns);
    }
    const bool vectors =
        columns % kVector<T> == 0 && all_aligned(args.src, args.diff_dst, args.diff_src, args.gamma);
    with_row_parts<T>(vectors, columns, [&](auto width, auto held, bool long_rows) {
      launch_rows(context_,
                  layer_normalization_backward_kernel<T, decltype(width)::value, decltype(held)::value>,
                  long_rows, rows, columns, x, args.gamma, args.mean, args.inverse_deviation, dy,
                  static_cast<T*>(args.diff_src));
    });
  });
}

}  // namespace dtrain::cuda
