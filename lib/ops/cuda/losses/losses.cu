// Losses, fused with their gradients. A warp processes a row; if rows are long, a block processes a row.
#include <limits>

#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/losses/elementwise_loss.h"
#include "ops/cuda/read_ahead.h"
#include "ops/cuda/reductions/groups.h"
#include "ops/math/row_losses.h"

namespace dtrain::cuda {
namespace {

/// A row's maximum `most`, and the sum of exp(x - most) over the row.
struct Exponentials {
  float most, total;
};

/// Computes a row's Exponentials in one pass. Whenever a greater element is found, the sum so far is
/// rescaled. After each access to the N elements from column c on, calls also(c).
template <int N, class T, class Group, class Also>
__device__ Exponentials exponentials(const Group& group, const T* x, int64_t columns, const Also& also) {
  float most = std::numeric_limits<float>::lowest(), total = 0.0f;
  for (int64_t c = group.rank() * N; c < columns; c += group.size() * N) {
    float values[N];
    load<N>(x + c, values);
    float greater = most;
#pragma unroll
    for (int i = 0; i < N; ++i) greater = values[i] > greater ? values[i] : greater;
    total *= math::exp(most - greater);
#pragma unroll
    for (int i = 0; i < N; ++i) total += math::exp(values[i] - greater);
    most = greater;
    also(c);
  }
  const float all = group.reduce(most, Max{});
  return {all, group.reduce(total * math::exp(most - all), Add{})};
}

/// Writes a row: of(c, values) sets the N values from column c on.
template <int N, class T, class Group, class Of>
__device__ void write_row(const Group& group, T* dst, int64_t columns, const Of& of) {
  for (int64_t c = group.rank() * N; c < columns; c += group.size() * N) {
    float values[N];
    of(c, values);
    store<N>(dst + c, values);
  }
}

// The functions below return the loss of one row and write its gradient times `scale` to `diff`, unless
// `diff` is null.

template <int N, class T, class Group>
__device__ double sparse_logits_row(const Group& group, const T* x, int32_t k, float scale, T* diff,
                                    int64_t columns) {
  const float chosen = to_float(x[k]);
  const auto [most, total] = exponentials<N>(group, x, columns, [](int64_t) {});
  if (diff) {
    const float factor = scale / total, greatest = most;
    write_row<N>(group, diff, columns, [&](int64_t c, float(&values)[N]) {
      load<N>(x + c, values);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        values[i] = factor * math::exp(values[i] - greatest) - (c + i == k ? scale : 0.0f);
      }
    });
  }
  return static_cast<double>(math::log(total)) + static_cast<double>(most - chosen);
}

/// The target distribution of a row. If Spread is true, a part of the distribution is spread over all classes
/// (label smoothing).
template <bool Spread>
struct DenseTarget {
  const float* t;
  float kept, spread;
  template <int N>
  __device__ void read(int64_t c, float (&targets)[N]) const {
    load<N>(t + c, targets);
    if constexpr (Spread) {
#pragma unroll
      for (int i = 0; i < N; ++i) targets[i] = kept * targets[i] + spread;
    }
  }
};
/// A target class with label smoothing: a part of the probability is spread over all classes.
struct SpreadClass {
  int64_t k;
  float kept, spread;
  template <int N>
  __device__ void read(int64_t c, float (&targets)[N]) const {
#pragma unroll
    for (int i = 0; i < N; ++i) targets[i] = c + i == k ? kept + spread : spread;
  }
};

template <int N, class T, class Group, class Target>
__device__ double dense_logits_row(const Group& group, const T* x, const Target& t, float scale, T* diff,
                                   int64_t columns) {
  float weight = 0.0f;
  const Exponentials sum = exponentials<N>(group, x, columns, [&](int64_t c) {
    float targets[N];
    t.read(c, targets);
#pragma unroll
    for (int i = 0; i < N; ++i) weight += targets[i];
  });
  weight = group.reduce(weight, Add{});
  const float offset = math::log(sum.total), factor = scale * weight / sum.total;
  float loss = 0.0f;
  for (int64_t c = group.rank() * N; c < columns; c += group.size() * N) {
    float values[N], targets[N];
    load<N>(x + c, values);
    t.read(c, targets);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      values[i] -= sum.most;
      loss += targets[i] * (offset - values[i]);
      values[i] = factor * math::exp(values[i]) - scale * targets[i];
    }
    if (diff) store<N>(diff + c, values);
  }
  return static_cast<double>(group.reduce(loss, Add{}));
}

template <int N, class T, class Group>
__device__ double sparse_probability_row(const Group& group, const T* p, int32_t k, float scale, T* diff,
                                         int64_t columns) {
  constexpr math::NegativeLogLikelihood kLoss;
  const float chosen = to_float(p[k]);
  if (diff) {
    const float slope = scale * kLoss.gradient(chosen, 1.0f);
    write_row<N>(group, diff, columns, [&](int64_t c, float(&values)[N]) {
#pragma unroll
      for (int i = 0; i < N; ++i) values[i] = c + i == k ? slope : 0.0f;
    });
  }
  return static_cast<double>(kLoss.value(chosen, 1.0f));
}

template <int N, class T, class Group, class Target>
__device__ double dense_probability_row(const Group& group, const T* p, const Target& t, float scale, T* diff,
                                        int64_t columns) {
  constexpr math::NegativeLogLikelihood kLoss;
  float loss = 0.0f;
  for (int64_t c = group.rank() * N; c < columns; c += group.size() * N) {
    float values[N], targets[N];
    load<N>(p + c, values);
    t.read(c, targets);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      loss += kLoss.value(values[i], targets[i]);
      values[i] = scale * kLoss.gradient(values[i], targets[i]);
    }
    if (diff) store<N>(diff + c, values);
  }
  return static_cast<double>(group.reduce(loss, Add{}));
}

/// Computes one row of a cross-entropy whose target has a probability for each class. Depending on the spec,
/// the predictions are logits or probabilities.
template <int N, class T, class Group, class Target>
__device__ double dense_row(const CrossEntropySpec& spec, const Group& group, const T* p, const Target& t,
                            float scale, T* diff, int64_t columns) {
  return spec.from_logits ? dense_logits_row<N>(group, p, t, scale, diff, columns)
                          : dense_probability_row<N>(group, p, t, scale, diff, columns);
}

template <int N, class T, class Group>
__device__ double absent_class_row(const Group& group, T* diff, int64_t columns) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (diff) {
    write_row<N>(group, diff, columns, [&](int64_t, float(&values)[N]) {
#pragma unroll
      for (int i = 0; i < N; ++i) values[i] = kNan;
    });
  }
  return static_cast<double>(kNan);
}

template <int N, class T, class Group>
__device__ double cross_entropy_row(const CrossEntropySpec& spec, const Group& group, const T* p,
                                    const void* target, int64_t row, float scale, T* diff, int64_t columns) {
  const float kept = 1.0f - spec.label_smoothing, spread = spec.label_smoothing / static_cast<float>(columns);
  if (!spec.sparse) {
    const float* t = static_cast<const float*>(target) + row * columns;
    return spec.label_smoothing == 0.0f
               ? dense_row<N>(spec, group, p, DenseTarget<false>{t, kept, spread}, scale, diff, columns)
               : dense_row<N>(spec, group, p, DenseTarget<true>{t, kept, spread}, scale, diff, columns);
  }
  const int32_t k = static_cast<const int32_t*>(target)[row];
  if (k < 0 || k >= columns) return absent_class_row<N>(group, diff, columns);
  if (spec.label_smoothing != 0.0f)
    return dense_row<N>(spec, group, p, SpreadClass{k, kept, spread}, scale, diff, columns);
  return spec.from_logits ? sparse_logits_row<N>(group, p, k, scale, diff, columns)
                          : sparse_probability_row<N>(group, p, k, scale, diff, columns);
}

template <class Group, int N, class T>
__global__ void __launch_bounds__(Group::kMostThreads, 1)
    cross_entropy_kernel(CrossEntropySpec spec, const T* prediction, const void* target, RowWeights weights,
                         float scale, const float* loss_scale, T* diff_prediction, int64_t rows,
                         int64_t columns, Total total) {
  const Group group;
  if (loss_scale) scale *= *loss_scale;
  double sum = 0;
  for (int64_t r = group.index(); r < rows; r += group.count()) {
    T* diff = diff_prediction ? diff_prediction + r * columns : nullptr;
    const float weight = weights.of(r);
    const double loss =
        cross_entropy_row<N>(spec, group, prediction + r * columns, target, r, weight * scale, diff, columns);
    if (group.rank() == 0) sum += static_cast<double>(weight) * loss;
  }
  leave(total, sum);
}

template <class Group, class T>
__global__ void __launch_bounds__(Group::kMostThreads, 1)
    row_loss_kernel(RowLossSpec spec, const T* prediction, const float* target, RowWeights weights,
                    float scale, const float* loss_scale, T* diff_prediction, int64_t rows, int64_t columns,
                    Total total) {
  const Group group;
  if (loss_scale) scale *= *loss_scale;
  double sum = 0;
  for (int64_t r = group.index(); r < rows; r += group.count()) {
    const T* p = prediction + r * columns;
    T* diff = diff_prediction + r * columns;
    const auto score = [&](int64_t c) { return to_float(p[c]); };
    const auto write = [&](int64_t c, float value) { diff[c] = from_float<T>(value); };
    const float weight = weights.of(r);
    sum +=
        static_cast<double>(weight) * math::row_loss(spec, group, score, target + r * columns, weight * scale,
                                                     columns, diff_prediction != nullptr, write);
  }
  leave(total, sum);
}

}  // namespace

void CudaOps::cross_entropy_loss(const CrossEntropySpec& spec, const LossArguments& args) {
  const int64_t rows = args.rows, columns = args.columns;
  if (rows <= 0) return;
  const Total sum{.total = args.total, .partials = partials()};
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const auto* p = static_cast<const T*>(args.prediction);
    auto* diff = static_cast<T*>(args.diff_prediction);
    const bool vectors = columns % kVector<T> == 0 && all_aligned(p, diff) &&
                         (spec.sparse || aligned_16(static_cast<const float*>(args.target.data)));
    with_width<T>(vectors, [&](auto width) {
      with_group(rows, columns, kPartials, [&](auto group, unsigned blocks, unsigned threads) {
        launch(cross_entropy_kernel<decltype(group), decltype(width)::value, T>, blocks, threads, stream(),
               spec, p, args.target.data, args.weights, args.scale, args.loss_scale, diff, rows, columns,
               sum);
        finish(sum, blocks, stream());
      });
    });
  });
}

void CudaOps::elementwise_loss(const ElementwiseLossSpec& spec, const LossArguments& args) {
  const int64_t divisor = spec.divisor(args.columns);
  const Total sum{.total = args.total, .partials = partials(), .divisor = static_cast<double>(divisor)};
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const ElementArrays<T> arrays{static_cast<const T*>(args.prediction),
                                  args.target.f32(),
                                  args.weights,
                                  args.columns,
                                  args.scale / static_cast<float>(divisor),
                                  args.loss_scale,
                                  static_cast<T*>(args.diff_prediction)};
    math::with_loss(spec,
                    [&](auto of) { launch_elements(context_, of, arrays, args.rows * args.columns, sum); });
  });
}

void CudaOps::row_loss(const RowLossSpec& spec, const LossArguments& args) {
  if (args.rows <= 0) return;
  const Total sum{.total = args.total, .partials = partials()};
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    with_group_or_thread(
        args.rows, args.columns, kPartials, [&](auto group, unsigned blocks, unsigned threads) {
          launch(row_loss_kernel<decltype(group), T>, blocks, threads, stream(), spec,
                 static_cast<const T*>(args.prediction), args.target.f32(), args.weights, args.scale,
                 args.loss_scale, static_cast<T*>(args.diff_prediction), args.rows, args.columns, sum);
          finish(sum, blocks, stream());
        });
  });
}

}  // namespace dtrain::cuda
