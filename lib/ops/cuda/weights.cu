// Kernels of regularizers and constraints.
#include <algorithm>
#include <bit>

#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/reductions/reduce.h"
#include "ops/cuda/reductions/totals.h"
#include "ops/cuda/vector.h"
#include "ops/math/penalties.h"

namespace dtrain::cuda {
namespace {

constexpr int kWeightThreads = 256;

template <class T>
__global__ void __launch_bounds__(kWeightThreads)
    penalty_kernel(PenaltySpec spec, const T* values, int64_t n, Total total) {
  double sum = 0;
  for (int64_t i = thread_index(); i < n; i += thread_count())
    sum += static_cast<double>(math::penalty(spec, to_float(values[i])));
  leave(total, sum);
}

__global__ void __launch_bounds__(kWeightThreads)
    penalty_gradient_kernel(PenaltySpec spec, GradientRule rule, const double* row_weights,
                            const StepState* state, const float* weights, float* gradient, int64_t n) {
  const float scale = math::penalty_scale(rule, row_weights, *state);
  for (int64_t i = thread_index(); i < n; i += thread_count())
    gradient[i] += scale * math::penalty_gradient(spec, weights[i]);
}

template <class T>
__global__ void __launch_bounds__(kWeightThreads)
    activity_gradient_kernel(PenaltySpec spec, const float* loss_scale, const T* values, T* dst, int64_t n) {
  for (int64_t i = thread_index(); i < n; i += thread_count())
    dst[i] = from_float<T>(*loss_scale * math::penalty_gradient(spec, to_float(values[i])));
}

/// Computes the dot products of the vectors a and b with each other and with themselves. All threads of the
/// block must call this function, and all get the result.
__device__ math::VectorPair pair_of(const OrthogonalSpec& spec, const float* weights, int64_t a, int64_t b) {
  math::VectorPair pair;
  for (int64_t k = threadIdx.x; k < spec.extent; k += blockDim.x)
    pair.add(weights[a * spec.stride + k * spec.step], weights[b * spec.stride + k * spec.step]);
  pair.product = block_reduce(pair.product, Add{});
  pair.squares_a = block_reduce(pair.squares_a, Add{});
  pair.squares_b = block_reduce(pair.squares_b, Add{});
  return pair;
}

/// Adds the orthogonality penalty to `total`. A block processes the pairs that consist of one vector and each
/// of the other vectors.
__global__ void __launch_bounds__(kWeightThreads)
    orthogonal_penalty_kernel(OrthogonalSpec spec, float factor, const float* weights, Total total) {
  double sum = 0;
  for (int64_t a = blockIdx.x; a < spec.vectors; a += gridDim.x)
    for (int64_t b = 0; b < spec.vectors; ++b)
      if (b != a) sum += pair_of(spec, weights, a, b).size_of_cosine();
  leave(total, threadIdx.x == 0 ? sum * static_cast<double>(factor) : 0.0);
}

__global__ void __launch_bounds__(kWeightThreads)
    orthogonal_gradient_kernel(OrthogonalSpec spec, float factor, GradientRule rule,
                               const double* row_weights, const StepState* state, const float* weights,
                               float* gradient, int64_t first, int64_t n) {
  // The penalty contains each pair of vectors twice, as (a, b) and as (b, a). Therefore, the gradient has the
  // factor 2.
  const double scale =
      2 * static_cast<double>(math::penalty_scale(rule, row_weights, *state)) * static_cast<double>(factor);
  for (int64_t a = blockIdx.x; a < spec.vectors; a += gridDim.x)
    for (int64_t b = 0; b < spec.vectors; ++b) {
      if (b == a) continue;
      const math::VectorPair pair = pair_of(spec, weights, a, b);
      const double of_a = scale * pair.factor_a(), of_b = scale * pair.factor_b();
      for (int64_t k = threadIdx.x; k < spec.extent; k += blockDim.x) {
        const int64_t at = a * spec.stride + k * spec.step, other = b * spec.stride + k * spec.step;
        if (at < first || at >= first + n) continue;
        gradient[at - first] += static_cast<float>(of_a * static_cast<double>(weights[at]) +
                                                   of_b * static_cast<double>(weights[other]));
      }
    }
}

template <class T>
__device__ void store_weight(float* weights, T* copy, int64_t at, float value) {
  const float values[1] = {value};
  weights[at] = value;
  if (copy) store<1>(copy + at, values);
}

template <class T>
__global__ void __launch_bounds__(kWeightThreads)
    remove_negatives_kernel(const StepState* state, float* weights, T* copy, int64_t n) {
  if (state->gradient.skip) return;
  for (int64_t i = thread_index(); i < n; i += thread_count())
    store_weight(weights, copy, i, math::without_negative(weights[i]));
}

/// The division of columns among the blocks of limit_norms_kernel. `down` threads share a column, and
/// `across` neighboring threads process neighboring columns. Both numbers are powers of two.
struct NormTiling {
  static constexpr int kThreads = 512;
  /// With 8 neighboring columns, each memory access uses whole sectors.
  static constexpr int64_t kMostAcross = 8;
  int across, down;

  explicit NormTiling(const ConstraintSpec& spec) {
    constexpr int64_t kElementsOfThread = 4;
    const auto power = [](int64_t n) { return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(n))); };
    across = power(std::clamp<int64_t>(spec.inner, 1, kMostAcross));
    down = power(std::clamp<int64_t>(spec.extent / kElementsOfThread, 1, kThreads / across));
  }
  __host__ __device__ int columns() const { return kThreads / down; }  // per block
};

/// Limits the norms of columns. A column is identified by an outer and an inner index.
template <class T>
__global__ void __launch_bounds__(NormTiling::kThreads)
    limit_norms_kernel(ConstraintSpec spec, NormTiling tiling, const StepState* state, float* weights,
                       T* copy) {
  if (state->gradient.skip) return;
  __shared__ double of_threads[NormTiling::kThreads];
  const int thread = static_cast<int>(threadIdx.x), part = thread / tiling.across % tiling.down;
  const int own = thread / (tiling.across * tiling.down) * tiling.across + thread % tiling.across;
  const int64_t columns = spec.outer * spec.inner, step = int64_t{gridDim.x} * tiling.columns();
  for (int64_t start = int64_t{blockIdx.x} * tiling.columns(); start < columns; start += step) {
    const int64_t column = start + own, end = column < columns ? spec.extent : 0;
    const Division at = divide(column, spec.inner);
    const int64_t first = at.quotient * spec.extent * spec.inner + at.rest;
    double squares = 0;
    read_ahead<8>(
        part, end, tiling.down, [&](int64_t k) { return weights[first + k * spec.inner]; },
        [&](int64_t, float x) { squares += static_cast<double>(x) * static_cast<double>(x); });
    of_threads[thread] = squares;
    __syncthreads();
    for (int half = tiling.down / 2; half > 0; half /= 2) {
      if (part < half) of_threads[thread] += of_threads[thread + half * tiling.across];
      __syncthreads();
    }
    const float factor = math::norm_factor(spec, of_threads[thread - part * tiling.across]);
    for (int64_t k = part; k < end; k += tiling.down) {
      const int64_t i = first + k * spec.inner;
      store_weight(weights, copy, i, factor * weights[i]);
    }
    __syncthreads();
  }
}

template <class T>
void enqueue_constraint(const ConstraintSpec& spec, const StepState* state, float* weights, T* copy,
                        int multiprocessors, cudaStream_t stream) {
  const int64_t columns = spec.outer * spec.inner, n = columns * spec.extent;
  if (n <= 0) return;
  if (spec.non_negative)
    return launch(remove_negatives_kernel<T>, blocks_for(n, kWeightThreads, multiprocessors), kWeightThreads,
                  stream, state, weights, copy, n);
  const NormTiling tiling(spec);
  launch(limit_norms_kernel<T>, blocks_for(columns, tiling.columns(), multiprocessors), NormTiling::kThreads,
         stream, spec, tiling, state, weights, copy);
}

}  // namespace

void CudaOps::add_penalty(const PenaltySpec& penalty, const float* weights, double* total, int64_t n) {
  if (n <= 0) return;
  const Total sum{.total = total, .partials = partials()};
  const unsigned blocks = blocks_for(n, kWeightThreads, context_.multiprocessors());
  launch(penalty_kernel<float>, blocks, kWeightThreads, stream(), penalty, weights, n, sum);
  finish(sum, blocks, stream());
}

void CudaOps::add_activity_penalty(const PenaltySpec& penalty, const void* values, double* total, int64_t n) {
  if (n <= 0) return;
  const Total sum{.total = total, .partials = partials()};
  const unsigned blocks = blocks_for(n, kWeightThreads, context_.multiprocessors());
  with_type(math_.type, [&](auto typed) {
    using T = decltype(typed);
    launch(penalty_kernel<T>, blocks, kWeightThreads, stream(), penalty, static_cast<const T*>(values), n,
           sum);
  });
  finish(sum, blocks, stream());
}

void CudaOps::activity_gradient(const PenaltySpec& penalty, const float* loss_scale, const void* values,
                                void* dst, int64_t n) {
  if (n <= 0) return;
  with_type(math_.type, [&](auto typed) {
    using T = decltype(typed);
    launch(activity_gradient_kernel<T>, blocks_for(n, kWeightThreads, context_.multiprocessors()),
           kWeightThreads, stream(), penalty, loss_scale, static_cast<const T*>(values), static_cast<T*>(dst),
           n);
  });
}

void CudaOps::add_penalty_gradient(const PenaltySpec& penalty, const PenaltyArguments& args) {
  if (args.n <= 0) return;
  launch(penalty_gradient_kernel, blocks_for(args.n, kWeightThreads, context_.multiprocessors()),
         kWeightThreads, stream(), penalty, args.rule, args.row_weights, args.state, args.weights,
         args.gradient, args.n);
}

void CudaOps::add_orthogonal_penalty(const OrthogonalSpec& spec, const float* weights, double* total) {
  const Total sum{.total = total, .partials = partials()};
  const unsigned blocks = blocks_for(spec.vectors, 1, context_.multiprocessors());
  launch(orthogonal_penalty_kernel, blocks, kWeightThreads, stream(), spec, math::orthogonal_factor(spec),
         weights, sum);
  finish(sum, blocks, stream());
}

void CudaOps::add_orthogonal_gradient(const OrthogonalSpec& spec, const PenaltyArguments& args,
                                      int64_t first) {
  launch(orthogonal_gradient_kernel, blocks_for(spec.vectors, 1, context_.multiprocessors()), kWeightThreads,
         stream(), spec, math::orthogonal_factor(spec), args.rule, args.row_weights, args.state, args.weights,
         args.gradient, first, args.n);
}

void CudaOps::constrain(const ConstraintSpec& spec, const StepState* state, float* weights, void* copy) {
  const int multiprocessors = context_.multiprocessors();
  if (!copy)
    return enqueue_constraint(spec, state, weights, static_cast<float*>(nullptr), multiprocessors, stream());
  with_type(math_.type, [&](auto typed) {
    enqueue_constraint(spec, state, weights, static_cast<decltype(typed)*>(copy), multiprocessors, stream());
  });
}

}  // namespace dtrain::cuda
