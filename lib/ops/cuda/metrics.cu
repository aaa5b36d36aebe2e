// Metrics: those of a row's best scores here, those of elements as losses without a gradient.
#include <limits>

#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/elementwise_loss.h"
#include "ops/cuda/groups.h"
#include "ops/cuda/read_ahead.h"
#include "ops/math/counts.h"

namespace dtrain::cuda {
namespace {

struct Least {
  __device__ int32_t operator()(int32_t a, int32_t b) const { return a < b ? a : b; }
};

/// 1 where class k is among the best `top`: see MetricSpec::k. A class that does not exist, or whose score is
/// NaN, is not.
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

/// The first place of the greatest element. NaN is greater than nothing, and nothing than a NaN at 0.
template <int N, class Group>
__device__ int64_t argmax(const Group& group, const float* row, int64_t columns) {
  float best = row[0];
  int32_t at = 0;
  for (int64_t c = group.rank() * N; c < columns; c += group.size() * N) {
    float values[N];
    load<N>(row + c, values);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      at = values[i] > best ? static_cast<int32_t>(c + i) : at;
      best = values[i] > best ? values[i] : best;
    }
  }
  const float most = group.reduce(best, Max{});
  const int32_t first = group.reduce(best == most ? at : std::numeric_limits<int32_t>::max(), Least{});
  return most == most ? first : 0;
}

template <class Group, int N, class T>
__global__ void __launch_bounds__(kTotalThreads)
    top_k_kernel(MetricSpec spec, const T* prediction, const void* target, RowWeights weights, int64_t rows,
                 int64_t columns, Total total) {
  const Group group;
  double sum = 0;
  for (int64_t r = group.index(); r < rows; r += group.count()) {
    const int64_t k = spec.kind == MetricSpec::Kind::sparse_top_k
                          ? static_cast<const int32_t*>(target)[r]
                          : argmax<N>(group, static_cast<const float*>(target) + r * columns, columns);
    const double hit = top_k_row<N>(group, prediction + r * columns, k, spec.k, columns);
    if (group.rank() == 0) sum += static_cast<double>(weights.of(r)) * hit;
  }
  leave(total, sum);
}

/// A thread a row. Sums of whole numbers are the same bits in any order; those of weights, squares and shares
/// of a row's answers may differ in their last bits from run to run, unless a single thread makes them.
template <class T>
__global__ void __launch_bounds__(kTotalThreads)
    count_kernel(CountSpec spec, const T* prediction, const void* target, RowWeights weights, double* sums,
                 int64_t rows, int64_t columns) {
  for (int64_t r = thread_index(); r < rows; r += thread_count()) {
    const T* p = prediction + r * columns;
    const double weight = static_cast<double>(weights.of(r));
    math::count_row(
        spec, [&](int64_t c) { return to_float(p[c]); }, target, r, columns,
        [&](int64_t place, double amount) { atomicAdd(sums + place, weight * amount); });
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

void CudaOps::count(const CountSpec& spec, const MetricArguments& args) {
  constexpr int kThreads = 256;
  if (args.rows <= 0) return;
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const bool shares = spec.kind == CountSpec::Kind::answers && args.columns > 1;
    const bool whole_numbers = !args.weights.values && spec.kind != CountSpec::Kind::regression && !shares;
    const bool one_by_one = math_.deterministic && !whole_numbers;
    const unsigned blocks = one_by_one ? 1 : blocks_for(args.rows, kThreads, context_.multiprocessors());
    launch(count_kernel<T>, blocks, one_by_one ? 1 : kThreads, stream(), spec,
           static_cast<const T*>(args.prediction), args.target.data, args.weights, args.sums, args.rows,
           args.columns);
  });
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
