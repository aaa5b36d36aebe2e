// What is done to rows and columns.
#include <limits>

#include "ops/cuda/column_sum.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/reduce.h"
#include "ops/cuda/vector.h"
#include "ops/math/functions.h"

namespace dtrain::cuda {
namespace {

template <class T>
struct AddBias {
  T* dst;
  const T *src, *bias;
  int64_t columns;

  /// For N > 1 columns is a multiple of N.
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

// A row is a warp's work, and a block has several of them; a long row is a whole block's. What a thread
// writes of a row it alone has read, so that a destination may be a source.

constexpr int kRowThreads = 256;
constexpr int64_t kLongRow = 1024;

template <class Combine>
__device__ inline float row_reduce(float value, Combine combine) {
  return blockDim.x == kWarp ? warp_reduce(value, combine) : block_reduce(value, combine);
}

/// use(r) for this thread's rows.
template <class Use>
__device__ inline void each_row(int64_t rows, Use&& use) {
  const int64_t step = int64_t{gridDim.x} * blockDim.y;
  for (int64_t r = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; r < rows; r += step) use(r);
}

/// use(c) for this thread's columns, N from c on.
template <int N, class Use>
__device__ inline void each_column(int64_t columns, Use&& use) {
  const int64_t step = int64_t{blockDim.x} * N;
  for (int64_t c = int64_t{threadIdx.x} * N; c < columns; c += step) use(c);
}

/// Loads src[at ...], or `otherwise` where there is no src.
template <int N>
__device__ inline void load_or(float otherwise, const float* src, int64_t at, float (&values)[N]) {
  if (src) return load(src + at, values);
#pragma unroll
  for (int j = 0; j < N; ++j) values[j] = otherwise;
}

template <class T, int N>
__global__ void __launch_bounds__(kRowThreads)
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
__global__ void __launch_bounds__(kRowThreads)
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

template <class T, int N>
__global__ void __launch_bounds__(kRowThreads)
    layer_normalization_forward_kernel(const T* src, const float* gamma, const float* beta, float epsilon,
                                       T* dst, float* mean, float* inverse_deviation, int64_t rows,
                                       int64_t columns) {
  const float share = 1.0f / static_cast<float>(columns);
  each_row(rows, [&](int64_t r) {
    const T* const x = src + r * columns;
    T* const y = dst + r * columns;
    float total = 0.0f, squares = 0.0f;
    each_column<N>(columns, [&](int64_t c) {
      float values[N];
      load(x + c, values);
      for (const float value : values) total += value;
    });
    const float m = row_reduce(total, Add{}) * share;
    each_column<N>(columns, [&](int64_t c) {
      float values[N];
      load(x + c, values);
      for (const float value : values) squares += (value - m) * (value - m);
    });
    const float inverse = 1.0f / ::sqrtf(row_reduce(squares, Add{}) * share + epsilon);
    if (threadIdx.x == 0) {
      mean[r] = m;
      inverse_deviation[r] = inverse;
    }
    each_column<N>(columns, [&](int64_t c) {
      float values[N], scales[N], offsets[N];
      load(x + c, values);
      load_or(1.0f, gamma, c, scales);
      load_or(0.0f, beta, c, offsets);
#pragma unroll
      for (int j = 0; j < N; ++j) values[j] = (values[j] - m) * inverse * scales[j] + offsets[j];
      store(y + c, values);
    });
  });
}

template <class T, int N>
__global__ void __launch_bounds__(kRowThreads)
    layer_normalization_backward_kernel(const T* src, const float* gamma, const float* mean,
                                        const float* inverse_deviation, const T* diff_dst, T* diff_src,
                                        int64_t rows, int64_t columns) {
  const float share = 1.0f / static_cast<float>(columns);
  each_row(rows, [&](int64_t r) {
    const T *const x = src + r * columns, *const dy = diff_dst + r * columns;
    T* const dx = diff_src + r * columns;
    const float m = mean[r], inverse = inverse_deviation[r];
    float total = 0.0f, dot = 0.0f;
    // Of each element the gradient of the normalised value, and the value less the mean.
    const auto load_terms = [&](int64_t c, float(&gradients)[N], float(&distances)[N]) {
      float scales[N];
      load(x + c, distances);
      load(dy + c, gradients);
      load_or(1.0f, gamma, c, scales);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        gradients[j] *= scales[j];
        distances[j] -= m;
      }
    };
    each_column<N>(columns, [&](int64_t c) {
      float gradients[N], distances[N];
      load_terms(c, gradients, distances);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        total += gradients[j];
        dot += gradients[j] * distances[j];
      }
    });
    total = row_reduce(total, Add{}) * share;
    dot = row_reduce(dot, Add{}) * share * inverse * inverse;
    each_column<N>(columns, [&](int64_t c) {
      float gradients[N], distances[N];
      load_terms(c, gradients, distances);
#pragma unroll
      for (int j = 0; j < N; ++j) gradients[j] = inverse * (gradients[j] - total - distances[j] * dot);
      store(dx + c, gradients);
    });
  });
}

/// Starts a kernel on rows.
template <class Kernel, class... Arguments>
void launch_rows(const CudaContext& context, Kernel kernel, int64_t rows, int64_t columns,
                 Arguments... arguments) {
  if (rows <= 0 || columns <= 0) return;
  const int rows_of_block = columns < kLongRow ? kRowThreads / kWarp : 1;
  const dim3 block(static_cast<unsigned>(kRowThreads / rows_of_block), static_cast<unsigned>(rows_of_block));
  launch(kernel, blocks_for(rows, rows_of_block, context.multiprocessors()), block, context.compute(),
         arguments..., rows, columns);
}

/// The gradient of layer normalisation's gamma.
template <class T>
struct ScaleGradient {
  const T *src, *diff_dst;
  const float *mean, *inverse_deviation;
  int64_t columns;
  __device__ float load(int64_t r, int64_t c) const {
    const float distance = to_float(src[r * columns + c]) - mean[r];
    return to_float(diff_dst[r * columns + c]) * distance * inverse_deviation[r];
  }
  __device__ float value(int64_t, int64_t, float loaded) const { return loaded; }
};

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
    sum_columns(context_, Element<T>{static_cast<const T*>(src), columns}, dst, rows, columns);
  });
}

void CudaOps::softmax_forward(const void* src, void* dst, int64_t rows, int64_t columns) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const bool vectors = columns % kVector<T> == 0 && all_aligned(src, dst);
    launch_rows(context_, vectors ? softmax_forward_kernel<T, kVector<T>> : softmax_forward_kernel<T, 1>,
                rows, columns, static_cast<const T*>(src), static_cast<T*>(dst));
  });
}

void CudaOps::softmax_backward(const void* dst, const void* diff_dst, void* diff_src, int64_t rows,
                               int64_t columns) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const bool vectors = columns % kVector<T> == 0 && all_aligned(dst, diff_dst, diff_src);
    launch_rows(context_, vectors ? softmax_backward_kernel<T, kVector<T>> : softmax_backward_kernel<T, 1>,
                rows, columns, static_cast<const T*>(dst), static_cast<const T*>(diff_dst),
                static_cast<T*>(diff_src));
  });
}

void CudaOps::layer_normalization_forward(const LayerNormalizationArguments& args) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const bool vectors =
        args.columns % kVector<T> == 0 && all_aligned(args.src, args.dst, args.gamma, args.beta);
    launch_rows(context_,
                vectors ? layer_normalization_forward_kernel<T, kVector<T>>
                        : layer_normalization_forward_kernel<T, 1>,
                args.rows, args.columns, static_cast<const T*>(args.src), args.gamma, args.beta, args.epsilon,
                static_cast<T*>(args.dst), args.mean, args.inverse_deviation);
  });
}

void CudaOps::layer_normalization_backward(const LayerNormalizationBackwardArguments& args) {
  const int64_t rows = args.rows, columns = args.columns;
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const T *const x = static_cast<const T*>(args.src), *const dy = static_cast<const T*>(args.diff_dst);
    // The parameters' gradients are made first, as diff_src may be diff_dst.
    if (args.diff_beta) sum_columns(context_, Element<T>{dy, columns}, args.diff_beta, rows, columns);
    if (args.diff_gamma) {
      sum_columns(context_, ScaleGradient<T>{x, dy, args.mean, args.inverse_deviation, columns},
                  args.diff_gamma, rows, columns);
    }
    const bool vectors =
        columns % kVector<T> == 0 && all_aligned(args.src, args.diff_dst, args.diff_src, args.gamma);
    launch_rows(context_,
                vectors ? layer_normalization_backward_kernel<T, kVector<T>>
                        : layer_normalization_backward_kernel<T, 1>,
                rows, columns, x, args.gamma, args.mean, args.inverse_deviation, dy,
                static_cast<T*>(args.diff_src));
  });
}

}  // namespace dtrain::cuda
