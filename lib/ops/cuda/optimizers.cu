// What optimizers need: the gradient's norm, what it is worth, and the rules over flat buffers.
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/stream.h"
#include "ops/cuda/totals.h"
#include "ops/cuda/vector.h"
#include "ops/math/gradient_scale.h"
#include "ops/math/optimizers.h"

namespace dtrain::cuda {
namespace {

constexpr int kThreads = 256;

/// More blocks than are busy at once, so that those that end early make room, up to what `partials` hold.
unsigned many_blocks(int64_t threads, int multiprocessors) {
  return blocks_for(threads, kThreads, std::min(4 * multiprocessors, 1024));
}

template <int N>
__global__ void __launch_bounds__(kTotalThreads) squares_kernel(const float* src, int64_t n, Total total) {
  double sums[N] = {};
  const auto load_one = [&](int64_t i) {
    Floats<N> values;
    load<N>(src + i * N, values.v);
    return values;
  };
  stream<4>(thread_index(), n / N, thread_count(), load_one, [&](int64_t, const Floats<N>& values) {
#pragma unroll
    for (int k = 0; k < N; ++k)
      sums[k] += static_cast<double>(values.v[k]) * static_cast<double>(values.v[k]);
  });
  double sum = 0;
  for (int64_t i = n / N * N + thread_index(); i < n; i += thread_count()) {
    sum += static_cast<double>(src[i]) * static_cast<double>(src[i]);
  }
#pragma unroll
  for (int k = 0; k < N; ++k) sum += sums[k];
  leave(total, sum);
}

__global__ void gradient_scale_kernel(GradientRule rule, const double* squares, const double* weights,
                                      StepState* state) {
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
  const Total total{.total = squares, .partials = partials(), .adds = false};
  with_width<float>(aligned_16(src), [&](auto width) {
    constexpr int N = decltype(width)::value;
    const unsigned blocks = n <= 16 * kTotalThreads ? 1 : many_blocks(n / N, context_.multiprocessors());
    launch(squares_kernel<N>, blocks, blocks == 1 ? kTotalThreads : kThreads, stream(), src, n, total);
    finish(total, blocks, stream());
  });
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
