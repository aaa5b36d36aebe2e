// What optimizers need: the gradient's norm, what it is worth, and the rules over flat buffers.
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/read_ahead.h"
#include "ops/cuda/reduce.h"
#include "ops/cuda/totals.h"
#include "ops/cuda/vector.h"
#include "ops/math/gradient_scale.h"
#include "ops/math/optimizers.h"
#include "ops/math/pairwise.h"

namespace dtrain::cuda {
namespace {

constexpr int kThreads = 256;

/// More blocks than are busy at once, so that those that end early make room, up to what `partials` hold.
unsigned many_blocks(int64_t threads, int multiprocessors) {
  return blocks_for(threads, kThreads, std::min(4 * multiprocessors, 1024));
}

constexpr int64_t kSquaresRun = kThreads * math::kSquaresGrain;  // what a block sums at a time

/// Returns the pairwise sum of the values of a warp's lanes, by index, to every lane.
__device__ double warp_pairwise_sum(double value) {
#pragma unroll
  for (int distance = 1; distance < kWarp; distance *= 2)
    value += __shfl_xor_sync(kAllLanes, value, distance);
  return value;
}

/// Returns the pairwise sum of the values of a block's threads, by index, to the threads of the first warp.
/// The block is of whole warps, a power of two of them.
__device__ double block_pairwise_sum(double value) {
  __shared__ double sums[kWarp];
  value = warp_pairwise_sum(value);
  if (threadIdx.x % kWarp == 0) sums[threadIdx.x / kWarp] = value;
  __syncthreads();
  if (threadIdx.x < kWarp)
    value = warp_pairwise_sum(threadIdx.x < blockDim.x / kWarp ? sums[threadIdx.x] : 0.0);
  __syncthreads();
  return value;
}

/// math::PairwiseSum in the registers of a warp: lane l keeps the sum of level l, as an array that is indexed
/// would be in local memory. All lanes call, with the same sums; there are fewer than 2^32 terms.
class WarpPairwiseSum {
 public:
  __device__ void add(double sum) {
    int level = 0;
    for (int64_t waiting = count_; waiting & 1; waiting >>= 1) sum = of_level(level++) + sum;
    if (static_cast<int>(threadIdx.x) % kWarp == level) own_ = sum;
    ++count_;
  }
  __device__ double total() const {
    double total = 0.0;
    int level = 0;
    for (int64_t waiting = count_; waiting != 0; waiting >>= 1, ++level)
      if (waiting & 1) total = of_level(level) + total;
    return total;
  }

 private:
  __device__ double of_level(int level) const { return __shfl_sync(kAllLanes, own_, level); }

  double own_ = 0;
  int64_t count_ = 0;
};

/// A block sums a piece of src, a grain in each thread at a time; block i's sum becomes sums[i].
template <int N>
__global__ void __launch_bounds__(kThreads)
    squares_kernel(const float* src, int64_t n, int64_t piece, double* sums) {
  constexpr int kGrain = static_cast<int>(math::kSquaresGrain);
  const int64_t first = int64_t{blockIdx.x} * piece, end = first + piece < n ? first + piece : n;
  WarpPairwiseSum sum;  // of the first warp
  for (int64_t run = first; run < end; run += kSquaresRun) {
    const int64_t begin = run + int64_t{threadIdx.x} * kGrain;
    float values[kGrain] = {};
    if (begin + kGrain <= end) {
#pragma unroll
      for (int i = 0; i < kGrain; i += N)
        load<N>(src + begin + i, *reinterpret_cast<float(*)[N]>(values + i));
    } else {
      for (int i = 0; begin + i < end; ++i) values[i] = src[begin + i];
    }
    const double whole = block_pairwise_sum(math::grain_of_squares(values));
    if (threadIdx.x < kWarp) sum.add(whole);
  }
  if (threadIdx.x >= kWarp) return;
  const double total = sum.total();
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

__global__ void __launch_bounds__(kTotalThreads)
    pieces_kernel(const double* sums, int pieces, double* total) {
  const double sum = block_pairwise_sum(static_cast<int>(threadIdx.x) < pieces ? sums[threadIdx.x] : 0.0);
  if (threadIdx.x == 0) *total = sum;
}

__global__ void __launch_bounds__(1)
    gradient_scale_kernel(GradientRule rule, const double* squares, const double* weights, StepState* state) {
  state->gradient = math::next_gradient_scale(rule, squares, weights, *state);
}

template <class T>
struct UpdateArrays {
  float* weights;
  const float* gradient;
  float* slots[3];
  T* copy;  // or null
};

template <int N, class T, class Rule>
__device__ void update_some(const Rule& rule, const UpdateNumbers& numbers, const UpdateArrays<T>& arrays,
                            int64_t i) {
  constexpr int kSlots = Rule::kSlots;
  float w[N], g[N], slots[3][N] = {};
  load<N>(arrays.weights + i, w);
  load<N>(arrays.gradient + i, g);
#pragma unroll
  for (int s = 0; s < kSlots; ++s) load<N>(arrays.slots[s] + i, slots[s]);
#pragma unroll
  for (int k = 0; k < N; ++k) {
    if constexpr (Rule::kOfGradient) w[k] -= numbers.decay * w[k];
    rule(w[k], math::scaled<true>(g[k], numbers), slots[0][k], slots[1][k], slots[2][k]);
  }
  store<N>(arrays.weights + i, w);
#pragma unroll
  for (int s = 0; s < kSlots; ++s) store<N>(arrays.slots[s] + i, slots[s]);
  if (arrays.copy) store<N>(arrays.copy + i, w);
}

template <int N, class T, class Rule>
__global__ void __launch_bounds__(kThreads)
    update_kernel(Rule rule, const StepState* state, GroupRule group, UpdateArrays<T> arrays, int64_t n) {
  if (state->gradient.skip) return;
  const UpdateNumbers numbers = math::update_numbers<Rule>(*state, group);
  math::begin_step(rule, numbers, *state, group);
  const int64_t vectors = n / N;
  for (int64_t i = thread_index(); i < vectors; i += thread_count()) {
    update_some<N>(rule, numbers, arrays, i * N);
  }
  if constexpr (N > 1) {
    for (int64_t i = vectors * N + thread_index(); i < n; i += thread_count()) {
      update_some<1>(rule, numbers, arrays, i);
    }
  }
}

}  // namespace

void CudaOps::sum_of_squares(const float* src, double* squares, int64_t n) {
  static_assert(math::kMostSquaresPieces <= kTotalThreads && math::kMostSquaresPieces <= kPartials);
  const int64_t piece = math::squares_piece(n, kSquaresRun);
  const auto pieces = static_cast<unsigned>(std::max<int64_t>((n + piece - 1) / piece, 1));
  double* const sums = pieces == 1 ? squares : partials();
  with_width<float>(aligned_16(src), [&](auto width) {
    launch(squares_kernel<decltype(width)::value>, pieces, kThreads, stream(), src, n, piece, sums);
  });
  if (pieces > 1) launch(pieces_kernel, 1, kTotalThreads, stream(), sums, static_cast<int>(pieces), squares);
}

void CudaOps::update_gradient_scale(const GradientRule& rule, const double* squares, const double* weights,
                                    StepState* state) {
  launch(gradient_scale_kernel, 1, 1, stream(), rule, squares, weights, state);
}

void CudaOps::update(const OptimizerRule& rule, const UpdateArguments& args) {
  const int64_t n = args.n;
  if (n <= 0) return;
  const auto slot = [&](size_t s) { return s < args.slots.size() ? args.slots[s] : nullptr; };
  const auto start = [&]<class T>(T* typed_copy) {
    const UpdateArrays<T> arrays{args.weights, args.gradient, {slot(0), slot(1), slot(2)}, typed_copy};
    const bool vectors = all_aligned(args.weights, args.gradient, slot(0), slot(1), slot(2), typed_copy);
    math::with_rule(rule, [&](auto of) {
      with_width<float>(vectors, [&](auto width) {
        constexpr int N = decltype(width)::value;
        launch(update_kernel<N, T, decltype(of)>, many_blocks(n / N, context_.multiprocessors()), kThreads,
               stream(), of, args.state, args.group, arrays, n);
      });
    });
  };
  if (!args.weights_copy) return start(static_cast<float*>(nullptr));
  with_type(math_.type, [&](auto type) { start(static_cast<decltype(type)*>(args.weights_copy)); });
}

}  // namespace dtrain::cuda
