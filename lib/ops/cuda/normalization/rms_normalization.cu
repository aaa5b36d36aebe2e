// RMS normalization of rows. The forward pass reads memory once; the backward pass reads it once for the
// scale's gradient and once for the input's gradient.
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/normalization/row_part.h"
#include "ops/cuda/reductions/column_sum.h"
#include "ops/cuda/reductions/rows.h"
#include "ops/cuda/vector.h"

namespace dtrain::cuda {
namespace {

template <class T, int N, int kHeld>
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    rms_normalization_forward_kernel(const T* src, const float* scale, math::InverseNorm norm, T* dst,
                                     float* inverse, int64_t rows, int64_t columns) {
  each_row(rows, [&](int64_t r) {
    RowPart<N, kHeld, T> x(src + r * columns, columns);
    T* const y = dst + r * columns;
    float squares = 0.0f;
    x.each([&](int64_t, const Raw<N, T>& values) {
#pragma unroll
      for (int j = 0; j < N; ++j) squares += values[j] * values[j];
    });
    const float factor = norm(row_reduce(squares, Add{}));
    if (threadIdx.x == 0) inverse[r] = factor;
    x.forget_floats();
    x.each([&](int64_t c, const Raw<N, T>& values) {
      float results[N], scales[N];
      load_or(1.0f, scale, c, scales);
#pragma unroll
      for (int j = 0; j < N; ++j) results[j] = values[j] * factor * scales[j];
      store(y + c, results);
    });
  });
}

template <class T, int N, int kHeld>
__global__ void __launch_bounds__(kRowThreads, kRowBlocks)
    rms_normalization_backward_kernel(const T* src, const float* scale, math::InverseNorm norm,
                                      const float* inverse, const T* diff_dst, T* diff_src, int64_t rows,
                                      int64_t columns) {
  each_row(rows, [&](int64_t r) {
    RowPart<N, kHeld, T> x(src + r * columns, columns), dy(diff_dst + r * columns, columns);
    T* const dx = diff_src + r * columns;
    const float factor = inverse[r];
    float dot = 0.0f;
    // Computes the gradients of the normalized values: diff_dst times the scale.
    const auto load_gradients = [&](int64_t c, const Raw<N, T>& diffs, float(&gradients)[N]) {
      load_or(1.0f, scale, c, gradients);
#pragma unroll
      for (int j = 0; j < N; ++j) gradients[j] *= diffs[j];
    };
    x.each_with(dy, [&](int64_t c, const Raw<N, T>& values, const Raw<N, T>& diffs) {
      float gradients[N];
      load_gradients(c, diffs, gradients);
#pragma unroll
      for (int j = 0; j < N; ++j) dot += gradients[j] * values[j];
    });
    const float slope = norm.slope(factor, row_reduce(dot, Add{}));
    x.forget_floats();
    dy.forget_floats();
    x.each_with(dy, [&](int64_t c, const Raw<N, T>& values, const Raw<N, T>& diffs) {
      float gradients[N];
      load_gradients(c, diffs, gradients);
#pragma unroll
      for (int j = 0; j < N; ++j) gradients[j] = gradients[j] * factor - values[j] * slope;
      store(dx + c, gradients);
    });
  });
}

/// Terms whose column sums are the gradient of the scale.
template <class T>
struct ScaleGradient {
  static constexpr int kSums = 1;
  const T *src, *diff_dst;
  const float* inverse;
  int64_t columns;
  __device__ float load(int64_t r, int64_t c) const {
    return to_float(diff_dst[r * columns + c]) * to_float(src[r * columns + c]) * inverse[r];
  }
  __device__ Floats<1> value(int64_t, int64_t, float loaded) const { return {loaded}; }
};

}  // namespace

void CudaOps::rms_normalization_forward(const RmsNormalizationArguments& args) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const bool vectors = args.columns % kVector<T> == 0 && all_aligned(args.src, args.dst, args.scale);
    with_row_parts<T>(vectors, args.columns, [&](auto width, auto held, bool long_rows) {
      launch_rows(context_,
                  rms_normalization_forward_kernel<T, decltype(width)::value, decltype(held)::value>,
                  long_rows, args.rows, args.columns, static_cast<const T*>(args.src), args.scale, args.norm,
                  static_cast<T*>(args.dst), args.inverse);
    });
  });
}

void CudaOps::rms_normalization_backward(const RmsNormalizationBackwardArguments& args) {
  const int64_t rows = args.rows, columns = args.columns;
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const T *const x = static_cast<const T*>(args.src), *const dy = static_cast<const T*>(args.diff_dst);
    // The scale's gradient is computed first, because diff_src may be diff_dst.
    if (args.diff_scale)
      sum_columns(context_, ScaleGradient<T>{x, dy, args.inverse, columns}, {{args.diff_scale}}, rows,
                  columns);
    if (!args.diff_src) return;
    const bool vectors =
        columns % kVector<T> == 0 && all_aligned(args.src, args.diff_dst, args.diff_src, args.scale);
    with_row_parts<T>(vectors, columns, [&](auto width, auto held, bool long_rows) {
      launch_rows(context_,
                  rms_normalization_backward_kernel<T, decltype(width)::value, decltype(held)::value>,
                  long_rows, rows, columns, x, args.scale, args.norm, args.inverse, dy,
                  static_cast<T*>(args.diff_src));
    });
  });
}

}  // namespace dtrain::cuda
