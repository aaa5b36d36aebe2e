#include <algorithm>

#include "ops/cpu/cpu_ops.h"
#include "ops/math/counts.h"

namespace dtrain::cpu {
namespace {

float scale_of(const LossArguments& args) {
  return args.loss_scale ? args.scale * *args.loss_scale : args.scale;
}

}  // namespace

void CpuOps::cross_entropy_loss(const CrossEntropySpec& spec, const LossArguments& args) {
  *args.total += total_of(args.rows, 1, args.columns, [&](int64_t begin, int64_t end) {
    return kernels_.cross_entropy(spec, f32(args.prediction), args.target.data, args.weights, scale_of(args),
                                  f32(args.diff_prediction), args.columns, begin, end);
  });
}

void CpuOps::elementwise_loss(const ElementwiseLossSpec& spec, const LossArguments& args) {
  const int64_t columns = args.columns, divisor = spec.divisor(columns);
  const float scale = scale_of(args) / static_cast<float>(divisor);
  const auto run = [&](float times, int64_t begin, int64_t end) {
    return kernels_.elementwise_loss(spec, f32(args.prediction), args.target.f32(), times,
                                     f32(args.diff_prediction), begin, end);
  };
  double values = 0;
  if (args.weights.values) {
    values = total_of(args.rows, 1, columns, [&](int64_t begin, int64_t end) {
      double sum = 0;
      for (int64_t r = begin; r < end; ++r) {
        const float weight = args.weights.of(r);
        sum += static_cast<double>(weight) * run(weight * scale, r * columns, (r + 1) * columns);
      }
      return sum;
    });
  } else {
    values = total_of(args.rows * columns, 16, 1,
                      [&](int64_t begin, int64_t end) { return run(scale, begin, end); });
  }
  *args.total += values / static_cast<double>(divisor);
}

void CpuOps::row_loss(const RowLossSpec& spec, const LossArguments& args) {
  *args.total += total_of(args.rows, 1, args.columns, [&](int64_t begin, int64_t end) {
    return kernels_.row_loss(spec, f32(args.prediction), args.target.f32(), args.weights, scale_of(args),
                             f32(args.diff_prediction), args.columns, begin, end);
  });
}

void CpuOps::metric(const MetricSpec& spec, const MetricArguments& args) {
  using Kind = MetricSpec::Kind;
  const bool of_rows = spec.kind == Kind::sparse_top_k || spec.kind == Kind::categorical_top_k;
  const double values = total_of(args.rows, 1, args.columns, [&](int64_t begin, int64_t end) {
    return kernels_.metric(spec, f32(args.prediction), args.target.data, args.weights, args.columns, begin,
                           end);
  });
  *args.sums += of_rows ? values : values / static_cast<double>(args.columns);
}

/// Counts on several threads. The first thread adds to args.sums directly. Every other thread adds to a
/// separate array, and these arrays are added to args.sums at the end. If a thread would have to clear more
/// sums than it reads elements, fewer threads are used.
void CpuOps::count(const CountSpec& spec, const MetricArguments& args) {
  const auto sums = static_cast<size_t>(spec.sums(args.columns));
  const int64_t useful = args.rows * args.columns / std::max<int64_t>(spec.sums(args.columns), 1);
  const auto threads = static_cast<int>(std::clamp<int64_t>(useful, 1, threads_));
  count_partials_.resize(static_cast<size_t>(threads - 1));
  for (std::vector<double>& partial : count_partials_) partial.clear();
  parallel(threads, args.rows, 1, args.columns, [&](int64_t begin, int64_t end, int thread) {
    double* mine = args.sums;
    if (thread > 0) {
      std::vector<double>& partial = count_partials_[static_cast<size_t>(thread - 1)];
      partial.assign(sums, 0.0);
      mine = partial.data();
    }
    for (int64_t r = begin; r < end; ++r) {
      const float* scores = f32(args.prediction) + r * args.columns;
      const double weight = static_cast<double>(args.weights.of(r));
      math::count_row(
          spec, math::OneThread{}, [&](int64_t c) { return scores[c]; }, args.target.data, r, args.columns,
          [&](int64_t place, double amount) { mine[place] += weight * amount; });
    }
  });
  for (const std::vector<double>& partial : count_partials_)
    for (size_t i = 0; i < partial.size(); ++i) args.sums[i] += partial[i];
}

void CpuOps::add_sum(const float* src, double* total, int64_t n) {
  *total += total_of(n, 16, 1, [&](int64_t begin, int64_t end) { return kernels_.sum_of(src, begin, end); });
}

}  // namespace dtrain::cpu
