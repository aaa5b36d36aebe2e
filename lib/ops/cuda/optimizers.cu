// Kernels of optimizers: sums of squares, the gradient scale, and the update rules, for flat buffers of
// parameters.
#include <algorithm>
#include <span>

#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/read_ahead.h"
#include "ops/cuda/reductions/reduce.h"
#include "ops/cuda/reductions/totals.h"
#include "ops/cuda/vector.h"
#include "ops/math/gradient_scale.h"
#include "ops/math/optimizers.h"
#include "ops/math/pairwise.h"

namespace dtrain::cuda {
namespace {

constexpr int kThreads = 256;

/// Returns a number of blocks that is larger than the number of blocks that the device runs at the same time,
/// so that a new block starts when a block ends early. The number is at most 8 * 1024, the size of
/// `partials`.
unsigned many_blocks(int64_t threads, int multiprocessors) {
  return blocks_for(threads, kThreads, std::min(4 * multiprocessors, 1024));
}

constexpr int64_t kSquaresRun = kThreads * math::kSquaresGrain;  // elements that a block sums at a time

/// Returns the pairwise sum of the values of all lanes of a warp, in lane order. Every lane gets the sum.
__device__ double warp_pairwise_sum(double value) {
#pragma unroll
  for (int distance = 1; distance < kWarp; distance *= 2)
    value += __shfl_xor_sync(kAllLanes, value, distance);
  return value;
}

/// Returns the pairwise sum of the values of all threads of a block, in thread order. Only the threads of the
/// first warp get the sum. The number of warps must be a power of two, and the last warp must be complete.
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

/// math::PairwiseSum in the registers of a warp: lane l holds the partial sum of level l. (An array that is
/// indexed at run time would be placed in slow local memory.) All lanes must call add() with the same value.
/// The total number of terms must be less than 2^32.
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

/// The division of the blocks of a launch among several arrays: blocks first[i] to first[i + 1] - 1 process
/// array i. A table of arrays is passed to the kernel as an argument. The arguments of a kernel are limited
/// to 4 KiB, which limits the number of arrays per launch (kMost).
template <int kMost>
struct Blocks {
  int arrays = 0;
  int first[kMost + 1] = {};

  int all() const { return first[arrays]; }
  void add(int64_t blocks) {
    first[arrays + 1] = first[arrays] + static_cast<int>(blocks);
    ++arrays;
  }
  /// Returns the index of the array that a block works on.
  __device__ int array_of(int block) const {
    int begin = 0, end = arrays;
    while (end - begin > 1) {
      const int middle = (begin + end) / 2;
      (first[middle] <= block ? begin : end) = middle;
    }
    return begin;
  }
};

struct SquaresTable {
  static constexpr int kMost = 120;
  Blocks<kMost> blocks;
  const float* src[kMost] = {};
  int64_t n[kMost] = {}, piece[kMost] = {};
};

/// Each block sums the squares of one piece of an array, and each thread sums one grain at a time. If the
/// array has only one piece, the sum is written to squares[array]; otherwise, it is written to
/// sums[blockIdx.x].
template <int N>
__global__ void __launch_bounds__(kThreads)
    squares_kernel(const __grid_constant__ SquaresTable table, double* sums, double* squares) {
  constexpr int kGrain = static_cast<int>(math::kSquaresGrain);
  const auto block = static_cast<int>(blockIdx.x);
  const int array = table.blocks.array_of(block), first_block = table.blocks.first[array];
  const float* const src = table.src[array];
  const int64_t n = table.n[array], piece = table.piece[array];
  const int64_t first = (block - first_block) * piece, end = first + piece < n ? first + piece : n;
  WarpPairwiseSum sum;  // only the first warp uses this sum
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
  if (threadIdx.x != 0) return;
  const bool whole = table.blocks.first[array + 1] - first_block == 1;
  *(whole ? squares + array : sums + block) = total;
}

/// Writes the sum of the pieces of array blockIdx.x to squares[blockIdx.x], if the array has several pieces.
__global__ void __launch_bounds__(kTotalThreads)
    pieces_kernel(const __grid_constant__ SquaresTable table, const double* sums, double* squares) {
  const int first = table.blocks.first[blockIdx.x], pieces = table.blocks.first[blockIdx.x + 1] - first;
  if (pieces == 1) return;
  const auto thread = static_cast<int>(threadIdx.x);
  const double sum = block_pairwise_sum(thread < pieces ? sums[first + thread] : 0.0);
  if (thread == 0) squares[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(1)
    gradient_scale_kernel(GradientRule rule, const double* squares, const double* weights, StepState* state) {
  state->gradient = math::next_gradient_scale(rule, squares, weights, *state);
}

template <class T>
struct UpdateArrays {
  float* weights;
  const float* gradient;
  float* slots[kMostSlots];
  T* copy;  // copy of the weights, or null
};

/// Updates N elements with one step of `Rule`.
template <class Rule, int N, class T>
__device__ void update_some(const typename Rule::Step& step, const UpdateNumbers& numbers,
                            const UpdateArrays<T>& arrays, int64_t i) {
  constexpr int kSlots = Rule::kTraits.slots;
  float w[N], g[N], slots[kMostSlots][N] = {};
  load<N>(arrays.weights + i, w);
  load<N>(arrays.gradient + i, g);
#pragma unroll
  for (int s = 0; s < kSlots; ++s) load<N>(arrays.slots[s] + i, slots[s]);
#pragma unroll
  for (int k = 0; k < N; ++k) {
    if constexpr (Rule::kTraits.of_gradient) w[k] -= numbers.decay * w[k];
    step(w[k], math::scaled<true>(g[k], numbers), slots[0][k], slots[1][k], slots[2][k]);
  }
  store<N>(arrays.weights + i, w);
#pragma unroll
  for (int s = 0; s < kSlots; ++s) store<N>(arrays.slots[s] + i, slots[s]);
  if (arrays.copy) store<N>(arrays.copy + i, w);
}

/// Updates n elements with one step of the rule. One thread of each block computes the scalars of the step,
/// because the bias corrections need double precision.
template <int N, class T, class Rule>
__global__ void __launch_bounds__(kThreads)
    update_kernel(Rule rule, const StepState* state, GroupRule group, UpdateArrays<T> arrays, int64_t n) {
  if (state->gradient.skip) return;
  const UpdateNumbers numbers = math::update_numbers<Rule>(*state, group);
  __shared__ typename Rule::Step begun;
  if (threadIdx.x == 0) begun = rule.begin(*state, group);
  __syncthreads();
  const typename Rule::Step step = begun;
  const int64_t vectors = n / N;
  for (int64_t i = thread_index(); i < vectors; i += thread_count()) {
    update_some<Rule, N>(step, numbers, arrays, i * N);
  }
  if constexpr (N > 1) {
    for (int64_t i = vectors * N + thread_index(); i < n; i += thread_count()) {
      update_some<Rule, 1>(step, numbers, arrays, i);
    }
  }
}

/// The parts of parameters that one launch updates. Part i has the elements [begin[i], begin[i + 1]).
struct DirectionTable {
  static constexpr int kMost = 160;
  static constexpr int64_t kPiece = int64_t{kThreads} * 4 * 8;  // elements that a block updates
  Blocks<kMost> blocks;
  int64_t begin[kMost + 1] = {}, elements[kMost] = {};
  float learning_rate_factor[kMost] = {};
};

/// Each block updates kPiece elements of a part. One thread of the block computes the step of this part.
/// `squares` has two sums for each part of the table.
template <int N, class T>
__global__ void __launch_bounds__(kThreads)
    direction_kernel(math::DirectionRule rule, const __grid_constant__ DirectionTable table,
                     const double* squares, const StepState* state, UpdateArrays<T> arrays) {
  if (state->gradient.skip) return;
  __shared__ math::DirectionStep::Step begun;
  const auto block = static_cast<int>(blockIdx.x);
  const int part = table.blocks.array_of(block);
  if (threadIdx.x == 0)
    begun = math::DirectionStep{rule, squares + 2 * part, table.elements[part]}.begin(
        *state, {.learning_rate_factor = table.learning_rate_factor[part]});
  __syncthreads();
  const math::DirectionStep::Step step = begun;
  const int64_t first = table.begin[part] + (block - table.blocks.first[part]) * DirectionTable::kPiece,
                part_end = table.begin[part + 1];
  const int64_t end = first + DirectionTable::kPiece < part_end ? first + DirectionTable::kPiece : part_end;
  int64_t i = first + int64_t{threadIdx.x} * N;
  for (; i + N <= end; i += int64_t{kThreads} * N) update_some<math::DirectionStep, N>(step, {}, arrays, i);
  for (; i < end; ++i)
    update_some<math::DirectionStep, 1>(step, {}, arrays, i);  // one thread updates the rest
}

/// Returns whether every part begins at a multiple of `elements`.
bool parts_begin_at(std::span<const ParameterPart> parts, int64_t elements) {
  if (parts.empty()) return true;
  return std::ranges::all_of(parts.first(parts.size() - 1),
                             [&](const auto& part) { return part.n % elements == 0; });
}

template <class T>
void update_along_directions(const math::DirectionRule& rule, std::span<const ParameterPart> parts,
                             const double* all_squares, const StepState* state, const UpdateArrays<T>& arrays,
                             bool vectors, cudaStream_t stream) {
  int64_t begin = 0;
  for (size_t done = 0; done < parts.size();) {
    DirectionTable table;
    const double* const squares = all_squares + 2 * done;
    table.begin[0] = begin;
    for (; done < parts.size() && table.blocks.arrays < DirectionTable::kMost; ++done) {
      const auto& [n, elements, factor] = parts[done];
      table.elements[table.blocks.arrays] = elements;
      table.learning_rate_factor[table.blocks.arrays] = factor;
      table.blocks.add((n + DirectionTable::kPiece - 1) / DirectionTable::kPiece);
      table.begin[table.blocks.arrays] = begin += n;
    }
    if (table.blocks.all() == 0) continue;
    with_width<float>(vectors && parts_begin_at(parts, kVector<float>), [&](auto width) {
      launch(direction_kernel<decltype(width)::value, T>, static_cast<unsigned>(table.blocks.all()), kThreads,
             stream, rule, table, squares, state, arrays);
    });
  }
}

}  // namespace

void CudaOps::sums_of_squares(std::span<const std::span<const float>> arrays, double* squares) {
  static_assert(math::kMostSquaresPieces <= kTotalThreads && math::kMostSquaresPieces <= kPartials);
  while (!arrays.empty()) {
    SquaresTable table;
    bool aligned = true, has_pieces = false;
    while (!arrays.empty() && table.blocks.arrays < SquaresTable::kMost) {
      const auto n = static_cast<int64_t>(arrays.front().size());
      const int64_t piece = math::squares_piece(n, kSquaresRun),
                    pieces = std::max<int64_t>((n + piece - 1) / piece, 1);
      if (table.blocks.all() + pieces > kPartials) break;
      const int i = table.blocks.arrays;
      table.src[i] = arrays.front().data();
      table.n[i] = n;
      table.piece[i] = piece;
      table.blocks.add(pieces);
      aligned = aligned && aligned_16(table.src[i]);
      has_pieces = has_pieces || pieces > 1;
      arrays = arrays.subspan(1);
    }
    with_width<float>(aligned, [&](auto width) {
      launch(squares_kernel<decltype(width)::value>, static_cast<unsigned>(table.blocks.all()), kThreads,
             stream(), table, partials(), squares);
    });
    if (has_pieces)
      launch(pieces_kernel, static_cast<unsigned>(table.blocks.arrays), kTotalThreads, stream(), table,
             partials(), squares);
    squares += table.blocks.arrays;
  }
}

void CudaOps::update_gradient_scale(const GradientRule& rule, const double* squares, const double* weights,
                                    StepState* state) {
  launch(gradient_scale_kernel, 1, 1, stream(), rule, squares, weights, state);
}

namespace {

/// Calls use(arrays, vectors), where `vectors` is true if all arrays are aligned for vectors. `type` is the
/// compute type.
template <class Use>
void with_update_arrays(DType type, const UpdateArguments& args, Use&& use) {
  const auto start = [&]<class T>(T* copy) {
    UpdateArrays<T> arrays{args.weights, args.gradient, {}, copy};
    bool vectors = all_aligned(args.weights, args.gradient, copy);
    for (size_t i = 0; i < args.slots.size(); ++i) {
      arrays.slots[i] = args.slots[i];
      vectors = vectors && all_aligned(args.slots[i]);
    }
    use(arrays, vectors);
  };
  if (!args.weights_copy) return start(static_cast<float*>(nullptr));
  with_type(type, [&](auto typed) { start(static_cast<decltype(typed)*>(args.weights_copy)); });
}

}  // namespace

void CudaOps::update(const OptimizerRule& any_rule, const UpdateArguments& args) {
  const int64_t n = args.n;
  if (n <= 0) return;
  with_update_arrays(math_.type, args, [&]<class T>(const UpdateArrays<T>& arrays, bool vectors) {
    math::with_rule(any_rule, [&]<class Rule>(const Rule& rule) {
      with_width<float>(vectors, [&](auto width) {
        constexpr int N = decltype(width)::value;
        launch(update_kernel<N, T, Rule>, many_blocks(n / N, context_.multiprocessors()), kThreads, stream(),
               rule, args.state, args.group, arrays, n);
      });
    });
  });
}

void CudaOps::apply_directions(const math::DirectionRule& rule, std::span<const ParameterPart> parts,
                               const double* squares, const UpdateArguments& args) {
  with_update_arrays(math_.type, args, [&](const auto& arrays, bool vectors) {
    update_along_directions(rule, parts, squares, args.state, arrays, vectors, stream());
  });
}

}  // namespace dtrain::cuda
