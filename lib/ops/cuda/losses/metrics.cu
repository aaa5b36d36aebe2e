// Metrics: top-k accuracy, and counts over rows. Elementwise metrics are computed like losses, but without a
// gradient.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/losses/elementwise_loss.h"
#include "ops/cuda/read_ahead.h"
#include "ops/cuda/reductions/groups.h"
#include "ops/math/counts.h"

namespace dtrain::cuda {
namespace {

/// The elements of a row as floats.
template <class T>
struct Row {
  const T* values;
  __device__ float operator()(int64_t c) const { return to_float(values[c]); }
};

/// Returns 1 if class k is among the best `top` classes (see MetricSpec::k), else 0. Returns 0 if the class
/// does not exist or its score is NaN.
template <int N, class T, class Group>
__device__ double top_k_row(const Group& group, const T* p, int64_t k, int top, int64_t columns) {
  if (k < 0 || k >= columns) return 0.0;
  const float score = to_float(p[k]);
  int32_t better = 0;
  for (int64_t c = group.rank() * N; c < columns; c += group.size() * N) {
    float values[N];
    load<N>(p + c, values);
#pragma unroll
    for (int i = 0; i < N; ++i) better += values[i] > score || (values[i] == score && c + i < k) ? 1 : 0;
  }
  better = group.reduce(better, Add{});
  return score == score && better < top ? 1.0 : 0.0;
}

template <class Group, int N, class T>
__global__ void __launch_bounds__(Group::kMostThreads, 1)
    top_k_kernel(MetricSpec spec, const T* prediction, const void* target, RowWeights weights, int64_t rows,
                 int64_t columns, Total total) {
  const Group group;
  double sum = 0;
  for (int64_t r = group.index(); r < rows; r += group.count()) {
    const int64_t k =
        spec.kind == MetricSpec::Kind::sparse_top_k
            ? static_cast<const int32_t*>(target)[r]
            : math::argmax(group, Row<float>{static_cast<const float*>(target) + r * columns}, columns);
    const double hit = top_k_row<N>(group, prediction + r * columns, k, spec.k, columns);
    if (group.rank() == 0) sum += static_cast<double>(weights.of(r)) * hit;
  }
  leave(total, sum);
}

/// The division of rows into pieces: row r belongs to piece r % pieces. One group of threads counts the rows
/// of a piece in order. If stride is 0, all pieces add to the same sums, `sums`. Otherwise, piece i has
/// separate sums, which begin at sums + i * stride, and the kernel first sets these sums to 0.
struct CountPieces {
  double* sums;
  int64_t pieces, stride;
};

constexpr int kCountThreads = 256;

template <class Group, class T>
__global__ void __launch_bounds__(kCountThreads, 1)
    count_kernel(CountSpec spec, const T* prediction, const void* target, RowWeights weights, CountPieces to,
                 int64_t rows, int64_t columns) {
  const Group group;
  for (int64_t piece = group.index(); piece < to.pieces; piece += group.count()) {
    double* const sums = to.sums + piece * to.stride;
    for (int64_t i = group.rank(); i < to.stride; i += group.size()) sums[i] = 0.0;
    for (int64_t r = piece; r < rows; r += to.pieces) {
      group.sync();  // waits until all threads have added the previous row
      const double weight = static_cast<double>(weights.of(r));
      math::count_row(spec, group, Row<T>{prediction + r * columns}, target, r, columns,
                      [&](int64_t place, double amount) { atomicAdd(sums + place, weight * amount); });
    }
  }
}

constexpr int64_t kBlockSumBytes = 16384;

/// Returns shared memory of kBlockSumBytes bytes. The array is not declared in the kernel template: every
/// instance of the template would then have its own array, and the emulation would copy all these arrays
/// whenever it switches to another block.
__device__ inline void* block_sums() {
  alignas(double) __shared__ std::byte bytes[kBlockSumBytes];
  return bytes;
}

/// Returns whether n sums of type Sum fit into block_sums().
template <class Sum>
constexpr bool fit_into_block(int64_t n) {
  return n * static_cast<int64_t>(sizeof(Sum)) <= kBlockSumBytes;
}

/// Counts rows in any order. If many rows add to one address in global memory, these additions run one after
/// another. Therefore each block first adds its rows to `n` sums in shared memory, which must fit into
/// block_sums(), and then adds these sums to `sums`. If there is space, the sums in shared memory have
/// several copies, so that fewer threads add to the same address. (In shared memory, an atomic addition of
/// float64 is a loop that repeats if another thread has changed the sum.)
///
/// Sum is double or uint32_t. uint32_t is faster, but it requires that all weights are 1, that the rows
/// contribute whole numbers, and that no sum of a block exceeds the range of uint32_t.
template <class Group, class T, class Sum>
__global__ void __launch_bounds__(kCountThreads, 1)
    count_in_blocks_kernel(CountSpec spec, const T* prediction, const void* target, RowWeights weights,
                           double* sums, int64_t n, int64_t rows, int64_t columns) {
  const Group group;
  const int64_t groups = blockDim.x / group.size(), space = kBlockSumBytes / int64_t{sizeof(Sum)} / n;
  const int64_t copies = std::min({space, groups, int64_t{kWarp}});
  Sum* const of_block = static_cast<Sum*>(block_sums());
  for (int64_t i = threadIdx.x; i < n * copies; i += blockDim.x) of_block[i] = Sum{0};
  __syncthreads();
  Sum* const own = of_block + threadIdx.x / group.size() % copies;
  for (int64_t r = group.index(); r < rows; r += group.count()) {
    const double weight = std::is_same_v<Sum, double> ? static_cast<double>(weights.of(r)) : 1.0;
    math::count_row(spec, group, Row<T>{prediction + r * columns}, target, r, columns,
                    [&](int64_t place, double amount) {
                      atomicAdd(own + place * copies, static_cast<Sum>(weight * amount));
                    });
  }
  __syncthreads();
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    Sum sum{0};
    for (int64_t copy = 0; copy < copies; ++copy) sum += of_block[i * copies + copy];
    if (sum != Sum{0}) atomicAdd(sums + i, static_cast<double>(sum));
  }
}

/// Adds the partial sums of all pieces to `sums`: for each i, sums[i] += the sum of the pieces' sums with
/// index i.
__global__ void add_pieces_kernel(CountPieces from, double* sums) {
  const WarpGroup group;
  for (int64_t i = group.index(); i < from.stride; i += group.count()) {
    double sum = 0.0;
    for (int64_t piece = group.rank(); piece < from.pieces; piece += group.size())
      sum += from.sums[piece * from.stride + i];
    sum = group.reduce(sum, Add{});
    if (group.rank() == 0) sums[i] += sum;
  }
}

__global__ void __launch_bounds__(kTotalThreads) sum_kernel(const float* src, int64_t n, Total total) {
  double sum = 0;
  for (int64_t i = thread_index(); i < n; i += thread_count()) sum += static_cast<double>(src[i]);
  leave(total, sum);
}

}  // namespace

void CudaOps::metric(const MetricSpec& spec, const MetricArguments& args) {
  using Kind = MetricSpec::Kind;
  const int64_t rows = args.rows, columns = args.columns;
  if (rows <= 0) return;
  Total sum{.total = args.sums, .partials = partials()};
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const auto* p = static_cast<const T*>(args.prediction);
    if (spec.kind == Kind::mean_absolute_error || spec.kind == Kind::binary_accuracy) {
      sum.divisor = static_cast<double>(columns);
      const ElementArrays<T> arrays{
          .prediction = p, .target = args.target.f32(), .weights = args.weights, .columns = columns};
      if (spec.kind == Kind::binary_accuracy) {
        launch_elements(context_, math::BinaryAccuracy{spec.threshold}, arrays, rows * columns, sum);
      } else {
        launch_elements(context_, math::AbsoluteError{}, arrays, rows * columns, sum);
      }
      return;
    }
    const bool vectors = columns % kVector<T> == 0 && aligned_16(p) &&
                         (spec.kind == Kind::sparse_top_k || aligned_16(args.target.f32()));
    with_width<T>(vectors, [&](auto width) {
      with_group(rows, columns, kPartials, [&](auto group, unsigned blocks, unsigned threads) {
        launch(top_k_kernel<decltype(group), decltype(width)::value, T>, blocks, threads, stream(), spec, p,
               args.target.data, args.weights, rows, columns, sum);
        finish(sum, blocks, stream());
      });
    });
  });
}

/// Sums of whole numbers are exact, so they do not depend on the order in which rows are added, and all rows
/// are added concurrently. The other sums (of row weights, of squares, and of the fraction of correct answers
/// of a row) depend on the order. If these sums must be deterministic, the rows are divided into pieces. The
/// number of pieces depends only on the number of rows and on the number of sums. If the order is not
/// important and there are few sums, each block combines its rows. A row adds at most 1 per column to a sum.
/// Therefore no sum exceeds rows * columns.
void CudaOps::count(const CountSpec& spec, const MetricArguments& args) {
  constexpr int64_t kMostPieces = 1024;
  if (args.rows <= 0) return;
  const int64_t sums = spec.sums(args.columns), most_blocks = int64_t{8} * context_.multiprocessors();
  const bool shares = spec.kind == CountSpec::Kind::answers && args.columns > 1;
  const bool whole_numbers = !args.weights.values && spec.kind != CountSpec::Kind::regression && !shares;
  const bool ordered = math_.deterministic && !whole_numbers;
  const bool small_numbers = whole_numbers && args.rows * args.columns <= int64_t{UINT32_MAX};
  CountPieces to{args.sums, args.rows, 0};
  if (ordered) {
    to.pieces = std::min({std::max<int64_t>(kPartials / sums, 1), kMostPieces, args.rows});
    if (to.pieces > 1) to = {partials(), to.pieces, sums};
  }
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const auto* const p = static_cast<const T*>(args.prediction);
    const auto count = [&](auto group, unsigned blocks, unsigned threads) {
      using Group = decltype(group);
      const auto start = [&](auto kernel, const auto&... where) {
        launch(kernel, blocks * threads / kCountThreads, kCountThreads, stream(), spec, p, args.target.data,
               args.weights, where..., args.rows, args.columns);
      };
      if (small_numbers && fit_into_block<uint32_t>(sums)) {
        start(count_in_blocks_kernel<Group, T, uint32_t>, args.sums, sums);
      } else if (!ordered && fit_into_block<double>(sums)) {
        start(count_in_blocks_kernel<Group, T, double>, args.sums, sums);
      } else {
        start(count_kernel<Group, T>, to);
      }
    };
    with_group_or_thread(to.pieces, args.columns, most_blocks, count);
  });
  if (to.stride == 0) return;
  const unsigned blocks = blocks_for(sums * kWarp, kCountThreads, context_.multiprocessors());
  launch(add_pieces_kernel, blocks, kCountThreads, stream(), to, args.sums);
}

void CudaOps::add_sum(const float* src, double* total, int64_t n) {
  constexpr int kThreads = 256;
  if (n <= 0) return;
  const Total sum{.total = total, .partials = partials()};
  const unsigned blocks = blocks_for(n, kThreads, context_.multiprocessors());
  launch(sum_kernel, blocks, kThreads, stream(), src, n, sum);
  finish(sum, blocks, stream());
}

}  // namespace dtrain::cuda
