// Layer normalization of rows. The forward pass reads memory once; the backward pass reads it once for the
// parameters' gradients and once for the input's gradient.
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/reductions/column_sum.h"
#include "ops/cuda/reductions/rows.h"
#include "ops/cuda/vector.h"

namespace dtrain::cuda {
namespace {

/// Accesses of a row that a thread keeps in registers, and minimum blocks per multiprocessor: with 4 blocks,
/// the backward kernel spills registers.
constexpr int kHeldAccesses = 4, kRowBlocks = 3;

/// A thread's elements of a row, for several iterations over them. Up to kHeld accesses of N elements are
/// kept in registers; if kHeld is 0, every iteration reads from memory.
template <int N, int kHeld, class T>
class RowPart {
 public:
  __device__ RowPart(const T* row, int64_t columns) : row_(row), columns_(columns) {
#pragma unroll
    for (int k = 0; k < kHeld; ++k)
      if (place(k) < columns_) held_[k] = load_raw<N>(row_ + place(k));
  }
  /// Makes the compiler convert the elements to float again after this call. Otherwise it would keep the
  /// floats across the reductions, in twice the registers.
  __device__ void forget_floats() {
    if constexpr (sizeof(T) < sizeof(float) && N > 1) {
      constexpr int kWords = kHeld * N * static_cast<int>(sizeof(T)) / static_cast<int>(sizeof(uint32_t));
#pragma unroll
      for (int i = 0; i < kWords; ++i) asm volatile("" : "+r"(reinterpret_cast<uint32_t*>(held_)[i]));
    }
  }
  /// Calls use(c, elements) for each of this thread's accesses: the N elements from column c on.
  template <class Use>
  __device__ void each(const Use& use) const {
    if constexpr (kHeld == 0) {
      each_column<N>(columns_, [&](int64_t c) { use(c, load_raw<N>(row_ + c)); });
    } else {
#pragma unroll
      for (int k = 0; k < kHeld; ++k)
        if (place(k) < columns_) use(place(k), held_[k]);
    }
  }
  /// Calls use(c, elements, other's elements) for each access.
  template <class Use>
  __device__ void each_with(const RowPart& other, const Use& use) const {
    if constexpr (kHeld == 0) {
      each([&](int64_t c, const Raw<N, T>& own) { use(c, own, load_raw<N>(other.row_ + c)); });
    } else {
#pragma unroll
      for (int k = 0; k < kHeld; ++k)
        if (place(k) < columns_) use(place(k), held_[k], other.held_[k]);
    }
  }

 private:
  __device__ int64_t place(int k) const {
    return (int64_t{k} * blockDim.x + threadIdx.x) * N;
  }

  const T* row_;
  int64_t columns_;
  Raw<N, T> held_[kHeld > 0 ? kHeld : 1];
};

/// Loads N values from src + at, or sets them to `otherwise` if src is null.
template <int N>
__device__ inline void load_or(float otherwise, const float* src, int64_t at, float (&values)[N]) {
  if (src) return load(src + at, values);
#pragma unroll
  for (int j = 0; j < N; ++j) values[j] = otherwise;
}

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
    // Loads the gradients with respect to the normalized values.
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

/// The term whose column sums are the gradients of gamma and beta.
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

/// Calls use(N, kHeld, long_rows) with constants N and kHeld that suit rows of T.
template <class T, class Use>
void with_row_parts(bool vectors, int64_t columns, Use&& use) {
  with_width<T>(vectors, [&](auto width) {
    constexpr int64_t kOfThread = kHeldAccesses * decltype(width)::value;
    const bool long_rows = columns > kWarp * kOfThread;
    if (columns > kRowThreads * kOfThread) return use(width, std::integral_constant<int, 0>{}, long_rows);
    use(width, std::integral_constant<int, kHeldAccesses>{}, long_rows);
  });
}

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
