// Group normalization. Usually, a block normalizes whole groups: it reads them once for their sums and once
// more, mostly from the cache, for the results. If there are too few groups to keep the device busy, the sums
// of the parts of a group are computed by a separate kernel.
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/normalization/group_layout.h"
#include "ops/cuda/reductions/column_sum.h"
#include "ops/math/divisor.h"

namespace dtrain::cuda {
namespace {

/// The arrays of the forward pass.
template <class T>
struct GroupForward {
  const T* src;
  const float *gamma, *beta;
  float epsilon;
  T* dst;
  float *mean, *inverse_deviation;
};

/// Returns the moments of the elements that this thread processes. The thread's first element is subtracted
/// from all elements before they are summed. Otherwise, a large mean would cost precision.
template <int N, class T>
__device__ ChannelMoments<1> moments_of(const GroupLayout& layout, const GroupPlace& place, const T* src) {
  ChannelMoments<1> moments = {};
  if (place.pixel >= place.end) return moments;
  const T* const x = src + place.first;
  const float own = to_float(x[place.pixel * layout.channels + place.column]);
  float distances = 0.0f, squares = 0.0f;
  int count = 0;
  each_vector_column<N>(layout, place, [&](int64_t c) {
    each_vector<4>(
        layout, place, c, [&](int64_t i) { return load_raw<N>(x + i); },
        [&](int64_t, const Raw<N, T>& values) {
          float distances_here = 0.0f, squares_here = 0.0f;
#pragma unroll
          for (int j = 0; j < N; ++j) {
            const float distance = values[j] - own;
            distances_here += distance;
            squares_here += distance * distance;
          }
          distances += distances_here;
          squares += squares_here;
          count += N;
        });
  });
  moments.count = static_cast<float>(count);
  moments.set(0, own, distances, squares, 1.0f / moments.count);
  return moments;
}

/// Writes the moments of the parts of each group, as [samples * groups, parts].
template <int N, class T>
__global__ void __launch_bounds__(kGroupThreads, kGroupBlocks)
    group_moments_kernel(GroupLayout layout, const T* src, ChannelMoments<1>* of_parts) {
  each_place<N>(layout, [&](const GroupPlace& place) {
    const ChannelMoments<1> whole = combine_threads(layout, place, moments_of<N>(layout, place, src));
    if (place.leads()) of_parts[place.group() * layout.parts + blockIdx.y] = whole;
  });
}

/// Normalizes the groups. `of_parts` contains the moments of the parts of each group. If it is null, the
/// kernel computes the moments of the groups itself.
template <int N, class T>
__global__ void __launch_bounds__(kGroupThreads, kGroupBlocks)
    group_normalization_forward_kernel(GroupLayout layout, GroupForward<T> arrays,
                                       const ChannelMoments<1>* of_parts) {
  const float share = layout.share();
  each_place<N>(layout, [&](const GroupPlace& place) {
    const ChannelMoments<1> moments =
        of_parts ? combine_stored(place, of_parts + place.bundle * layout.parts, layout.parts)
                 : combine_threads(layout, place, moments_of<N>(layout, place, arrays.src));
    const float mean = moments.mean[0], variance = moments.squares[0] * share;
    const float inverse = 1.0f / ::sqrtf((variance < 0.0f ? 0.0f : variance) + arrays.epsilon);
    if (place.leads() && blockIdx.y == 0) {
      arrays.mean[place.group()] = mean;
      arrays.inverse_deviation[place.group()] = inverse;
    }
    const T* const x = arrays.src + place.first;
    T* const y = arrays.dst + place.first;
    each_vector_column<N>(layout, place, [&](int64_t c) {
      Floats<N> scales = load_channels<N>(arrays.gamma, place.channel + c, 1.0f);
      const Floats<N> shifts = load_channels<N>(arrays.beta, place.channel + c, 0.0f);
#pragma unroll
      for (int j = 0; j < N; ++j) scales.v[j] *= inverse;
      each_vector<4>(
          layout, place, c, [&](int64_t i) { return load_raw<N>(x + i); },
          [&](int64_t i, const Raw<N, T>& values) {
            Floats<N> results;
#pragma unroll
            for (int j = 0; j < N; ++j) results.v[j] = (values[j] - mean) * scales.v[j] + shifts.v[j];
            store<N>(y + i, results.v);
          });
    });
  });
}

/// The arrays of the backward pass. diff_src may be diff_dst: each element is read and written by the same
/// thread.
template <class T>
struct GroupBackward {
  const T* src;
  const float *gamma, *mean, *inverse_deviation;
  const T* diff_dst;
  T* diff_src;
};

/// The inputs that a thread of the backward pass loads from one pixel.
template <int N, class T>
struct GroupVectors {
  Raw<N, T> x, diff;
};

/// Calls use(i, values, scales) for each vector that this thread processes, as each_vector() does. scales
/// are the gammas of the vector's channels.
template <int N, class T, class Use>
__device__ void each_gradient(const GroupLayout& layout, const GroupPlace& place,
                              const GroupBackward<T>& arrays, const Use& use) {
  const T *const x = arrays.src + place.first, *const dy = arrays.diff_dst + place.first;
  each_vector_column<N>(layout, place, [&](int64_t c) {
    const Floats<N> scales = load_channels<N>(arrays.gamma, place.channel + c, 1.0f);
    each_vector<2>(
        layout, place, c,
        [&](int64_t i) {
          return GroupVectors<N, T>{load_raw<N>(x + i), load_raw<N>(dy + i)};
        },
        [&](int64_t i, const GroupVectors<N, T>& values) { use(i, values, scales); });
  });
}

/// Returns the sums of the gradients of the normalized values over the elements that this thread processes.
template <int N, class T>
__device__ ChannelGradients<1> gradient_sums_of(const GroupLayout& layout, const GroupPlace& place,
                                                const GroupBackward<T>& arrays) {
  const float mean = arrays.mean[place.group()];
  ChannelGradients<1> sums = {};
  each_gradient<N>(layout, place, arrays,
                   [&](int64_t, const GroupVectors<N, T>& values, const Floats<N>& scales) {
                     float gradients = 0.0f, products = 0.0f;
#pragma unroll
                     for (int j = 0; j < N; ++j) {
                       const float gradient = values.diff[j] * scales.v[j];
                       gradients += gradient;
                       products += gradient * (values.x[j] - mean);
                     }
                     sums.gradients[0] += gradients;
                     sums.products[0] += products;
                   });
  return sums;
}

/// Writes the gradient sums of the parts of each group, as [samples * groups, parts].
template <int N, class T>
__global__ void __launch_bounds__(kGroupThreads, kGroupBlocks)
    group_gradient_sums_kernel(GroupLayout layout, GroupBackward<T> arrays, ChannelGradients<1>* of_parts) {
  each_place<N>(layout, [&](const GroupPlace& place) {
    const ChannelGradients<1> whole =
        combine_threads(layout, place, gradient_sums_of<N>(layout, place, arrays));
    if (place.leads()) of_parts[place.group() * layout.parts + blockIdx.y] = whole;
  });
}

/// Computes the gradient of the source. `of_parts` contains the gradient sums of the parts of each group. If
/// it is null, the kernel computes the gradient sums of the groups itself.
template <int N, class T>
__global__ void __launch_bounds__(kGroupThreads, kGroupBlocks)
    group_normalization_backward_kernel(GroupLayout layout, GroupBackward<T> arrays,
                                        const ChannelGradients<1>* of_parts) {
  const float share = layout.share();
  each_place<N>(layout, [&](const GroupPlace& place) {
    const ChannelGradients<1> sums =
        of_parts ? combine_stored(place, of_parts + place.bundle * layout.parts, layout.parts)
                 : combine_threads(layout, place, gradient_sums_of<N>(layout, place, arrays));
    const float mean = arrays.mean[place.group()], inverse = arrays.inverse_deviation[place.group()];
    const float total = sums.gradients[0] * share, dot = sums.products[0] * share * inverse * inverse;
    T* const dx = arrays.diff_src + place.first;
    each_gradient<N>(layout, place, arrays,
                     [&](int64_t i, const GroupVectors<N, T>& values, const Floats<N>& scales) {
                       Floats<N> diffs;
#pragma unroll
                       for (int j = 0; j < N; ++j) {
                         const float gradient = values.diff[j] * scales.v[j];
                         diffs.v[j] = inverse * (gradient - total - (values.x[j] - mean) * dot);
                       }
                       store<N>(dx + i, diffs.v);
                     });
  });
}

/// Terms whose column sums are the gradients of gamma and beta; rows are the pixels of all samples.
template <class T>
struct GroupGradients {
  static constexpr int kSums = 2;
  const T *src, *diff_dst;
  const float *mean, *inverse_deviation;
  int64_t channels, groups;
  math::Divisor pixels, width;
  __device__ Floats<2> load(int64_t r, int64_t c) const {
    const int64_t group = pixels.quotient(r) * groups + width.quotient(c);
    const float distance = to_float(src[r * channels + c]) - mean[group];
    const float diff = to_float(diff_dst[r * channels + c]);
    return {diff * distance * inverse_deviation[group], diff};
  }
  __device__ Floats<2> value(int64_t, int64_t, const Floats<2>& loaded) const { return loaded; }
};

/// Calls use(N) with the number of channels per access: the largest power of two that divides the number of
/// channels of a group, up to 16 bytes.
template <class T, class Use>
void with_group_vectors(int64_t width, bool aligned, const Use& use) {
  if constexpr (kVector<T> == 8)
    if (aligned && width % 8 == 0) return use(std::integral_constant<int, 8>{});
  if (aligned && width % 4 == 0) return use(std::integral_constant<int, 4>{});
  if (aligned && width % 2 == 0) return use(std::integral_constant<int, 2>{});
  use(std::integral_constant<int, 1>{});
}

/// Returns the layout for vectors of N elements of type T. The workspace has room for the Values of all
/// parts.
template <int N, class T, class Values, class Arguments>
GroupLayout layout_of(const CudaContext& context, const Arguments& args) {
  const int64_t room =
      static_cast<int64_t>(context.workspace_bytes() / sizeof(Values)) / (args.samples * args.groups);
  return group_layout(args.samples, args.pixels, args.channels, args.groups, N, N * sizeof(T),
                      context.multiprocessors(), room);
}

}  // namespace

void CudaOps::group_normalization_forward(const GroupNormalizationArguments& args) {
  if (args.samples * args.pixels * args.channels <= 0) return;
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    using Moments = ChannelMoments<1>;
    const GroupForward<T> arrays{static_cast<const T*>(args.src),
                                 args.gamma,
                                 args.beta,
                                 args.epsilon,
                                 static_cast<T*>(args.dst),
                                 args.mean,
                                 args.inverse_deviation};
    const bool aligned = all_aligned(arrays.src, arrays.dst);
    with_group_vectors<T>(args.channels / args.groups, aligned, [&](auto vector) {
      constexpr int N = decltype(vector)::value;
      const GroupLayout layout = layout_of<N, T, Moments>(context_, args);
      const dim3 grid = layout.grid(context_.multiprocessors());
      // The operations of the compute stream run one after the other, so no other operation uses the
      // workspace at the same time.
      auto* const of_parts = layout.parts > 1 ? static_cast<Moments*>(context_.workspace()) : nullptr;
      if (of_parts)
        launch(group_moments_kernel<N, T>, grid, kGroupThreads, stream(), layout, arrays.src, of_parts);
      launch(group_normalization_forward_kernel<N, T>, grid, kGroupThreads, stream(), layout, arrays,
             of_parts);
    });
  });
}

void CudaOps::group_normalization_backward(const GroupNormalizationBackwardArguments& args) {
  if (args.samples * args.pixels * args.channels <= 0) return;
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    using Sums = ChannelGradients<1>;
    const GroupBackward<T> arrays{static_cast<const T*>(args.src),
                                  args.gamma,
                                  args.mean,
                                  args.inverse_deviation,
                                  static_cast<const T*>(args.diff_dst),
                                  static_cast<T*>(args.diff_src)};
    const int64_t width = args.channels / args.groups;
    // The parameters' gradients are computed first, because diff_src may be diff_dst.
    if (args.diff_gamma || args.diff_beta)
      sum_columns(
          context_,
          GroupGradients<T>{arrays.src, arrays.diff_dst, args.mean, args.inverse_deviation, args.channels,
                            args.groups, math::Divisor(args.pixels), math::Divisor(width)},
          {{args.diff_gamma, args.diff_beta}}, args.samples * args.pixels, args.channels);
    if (!args.diff_src) return;
    const bool aligned = all_aligned(arrays.src, arrays.diff_dst, arrays.diff_src);
    with_group_vectors<T>(width, aligned, [&](auto vector) {
      constexpr int N = decltype(vector)::value;
      const GroupLayout layout = layout_of<N, T, Sums>(context_, args);
      const dim3 grid = layout.grid(context_.multiprocessors());
      auto* const of_parts = layout.parts > 1 ? static_cast<Sums*>(context_.workspace()) : nullptr;
      if (of_parts)
        launch(group_gradient_sums_kernel<N, T>, grid, kGroupThreads, stream(), layout, arrays, of_parts);
      launch(group_normalization_backward_kernel<N, T>, grid, kGroupThreads, stream(), layout, arrays,
             of_parts);
    });
  });
}

}  // namespace dtrain::cuda
