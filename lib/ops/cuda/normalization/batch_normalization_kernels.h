// Kernels of batch normalization of [rows, channels]. The forward pass and the backward pass both read the
// data twice: first to compute sums over each channel, and then to compute the results.
//
// y = scale (x - mean) + shift. The mean is rounded to float32, and the shift includes the correction for the
// rounding error. For the gradient of the relu, the backward pass computes y again from x.
#pragma once

#include "ops/cuda/read_ahead.h"
#include "ops/cuda/reductions/channel_sums.h"
#include "ops/cuda/vector.h"
#include "ops/math/activations.h"
#include "ops/math/normalization.h"

namespace dtrain::cuda {

/// Arrays of [channels] that the forward pass saves for the backward pass.
struct Kept {
  float* scale;
  float* shift;
  float* residual;  // the mean minus its value rounded to float32
};

__device__ inline float inverse_deviation(float variance, float epsilon) {
  return 1.0f / ::sqrtf(variance + epsilon);
}
__device__ inline float scale_of(const float* gamma, int64_t channel, float inverse) {
  return gamma ? gamma[channel] * inverse : inverse;
}

template <int N, class T>
__device__ Raw<N, T> load_row(const T* src, const Tiling& tiling, const TilePlace& place, int64_t row) {
  return load_raw<N>(src + row * tiling.channels + place.channel);
}

/// Parameters of the normalization, and the arrays to which the statistics and the values for the backward
/// pass are written.
struct Normalization {
  const float* gamma;
  const float* beta;
  float epsilon;
  float* mean;
  float* variance;
  Kept kept;

  __device__ void leave(int64_t c, double found_mean, double found_variance) const {
    const math::Normalizer n = math::normalizer_of(found_mean, found_variance, epsilon,
                                                   gamma ? gamma[c] : 1.0f, beta ? beta[c] : 0.0f);
    mean[c] = n.mean;
    variance[c] = n.variance;
    kept.scale[c] = n.scale;
    kept.shift[c] = n.shift;
    kept.residual[c] = n.residual;
  }
};

/// Computes a channel's statistics from the sum of x - p and the sum of (x - p)^2, where p is the channel's
/// value in the first row.
template <class T>
struct FinishStatistics {
  int64_t rows, channels;
  const T* src;
  Normalization to;
  double* mine;  // if not null, receives this replica's moments, and `to` is not written

  __device__ void operator()(int64_t c, const SumPair& sums) const {
    const auto n = static_cast<double>(rows);
    const double distance = sums.first / n, square = sums.second / n - distance * distance;
    const double mean = static_cast<double>(to_float(src[c])) + distance, variance = square < 0 ? 0 : square;
    if (!mine) return to.leave(c, mean, variance);
    if (c == 0) mine[0] = n;
    mine[1 + c] = mean;
    mine[1 + channels + c] = variance * n;
  }
};

/// Each thread sums the distances from its first element. If it summed the elements themselves, or the
/// distances from the first row, a large mean or an unusual first row would cost precision.
template <int N, class T>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks)
    statistics_kernel(Tiling tiling, const T* src, double* partials, unsigned* arrived,
                      FinishStatistics<T> finish) {
  const TilePlace place = place_in<N>(tiling);
  ChannelMoments<N> moments = {};
  if (place.any) {
    const Raw<N, T> own = load_row<N>(src, tiling, place, place.row);
    float distances[N] = {}, squares[N] = {};
    read_ahead<4>(
        place.row, tiling.rows, place.stride,
        [&](int64_t row) { return load_row<N>(src, tiling, place, row); },
        [&](int64_t, const Raw<N, T>& x) {
#pragma unroll
          for (int i = 0; i < N; ++i) {
            const float distance = x[i] - own[i];
            distances[i] += distance;
            squares[i] += distance * distance;
          }
        });
    moments.count = static_cast<float>((tiling.rows - place.row + place.stride - 1) / place.stride);
    const float share = 1.0f / moments.count;
#pragma unroll
    for (int i = 0; i < N; ++i) moments.set(i, own[i], distances[i], squares[i], share);
  }
  leave_channel_sums(moments, tiling, partials, [&](int64_t channel) { return to_float(src[channel]); });
  finish_if_last<N>(tiling, partials, arrived, finish);
}

/// Computes the statistics over the rows of all replicas from the moments of each replica. Each thread
/// processes one channel.
__global__ static void __launch_bounds__(kTileThreads, 1)
    join_moments_kernel(int64_t channels, int replicas, const double* all, Normalization to, double* rows) {
  const int64_t c = thread_index();
  if (c >= channels) return;
  const math::Moments whole = math::moments_of(all, replicas, math::moments_size(channels), channels, c);
  to.leave(c, whole.mean, math::variance_of(whole));
  if (c == 0) *rows = whole.count;
}

/// The inputs that a thread of normalize_kernel loads from one row.
template <int N, class T>
struct ForwardRow {
  Raw<N, T> x, addend;
};

/// Parameters of normalize_kernel, arrays of [channels].
struct Channels {
  const float* mean;
  const float* scale;     // if null, gamma / deviation is used
  const float* gamma;     // null: 1
  const float* variance;  // used if scale is null
  const float* shift;     // null: 0
  float epsilon;
};

template <int N, bool kAdds, class T>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks)
    normalize_kernel(Tiling tiling, const T* src, const T* addend, Channels channels, bool relu, T* dst) {
  const TilePlace place = place_in<N>(tiling);
  if (!place.any) return;
  const Floats<N> means = load_channels<N>(channels.mean, place.channel, 0.0f);
  const Floats<N> shifts = load_channels<N>(channels.shift, place.channel, 0.0f);
  Floats<N> scales = load_channels<N>(channels.scale, place.channel, 0.0f);
  if (!channels.scale) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const int64_t c = place.channel + i;
      scales.v[i] = scale_of(channels.gamma, c, inverse_deviation(channels.variance[c], channels.epsilon));
    }
  }
  read_ahead<4>(
      place.row, tiling.rows, place.stride,
      [&](int64_t row) {
        ForwardRow<N, T> values;
        values.x = load_row<N>(src, tiling, place, row);
        if constexpr (kAdds) values.addend = load_row<N>(addend, tiling, place, row);
        return values;
      },
      [&](int64_t row, const ForwardRow<N, T>& values) {
        Floats<N> y;
#pragma unroll
        for (int i = 0; i < N; ++i) {
          y.v[i] = ::fmaf(values.x[i] - means.v[i], scales.v[i], shifts.v[i]);
          if constexpr (kAdds) y.v[i] += values.addend[i];
          if (relu) y.v[i] = math::Relu().forward(y.v[i]);
        }
        store<N>(dst + row * tiling.channels + place.channel, y.v);
      });
}

/// The inputs that a thread of the backward pass loads from one row.
template <int N, class T>
struct BackwardRow {
  Raw<N, T> x, diff;
  bool counts = true;  // false if the row is masked
};

template <class T>
struct BackwardArrays {
  const T* src;
  const T* diff_dst;
  const float* mean;
  const float* variance;
  float epsilon;
  Kept kept;
};

/// The values that a thread keeps in registers for its channels. gradient(i, x, diff) returns the gradient of
/// y before the relu, where x is an element of src minus the mean and diff is an element of diff_dst.
template <int N, bool kRelu, class T>
struct BackwardChannels {
  Floats<N> means, scales, shifts;

  __device__ BackwardChannels(const BackwardArrays<T>& arrays, int64_t channel)
      : means(load_channels<N>(arrays.mean, channel, 0.0f)),
        scales(load_channels<N>(arrays.kept.scale, channel, 0.0f)),
        shifts(load_channels<N>(arrays.kept.shift, channel, 0.0f)) {}
  __device__ float gradient(int i, float x, float diff) const {
    if constexpr (!kRelu) return diff;
    return math::Relu().backward(::fmaf(x, scales.v[i], shifts.v[i]), diff);
  }
};

template <int N, class T>
__device__ BackwardRow<N, T> load_backward(const BackwardArrays<T>& arrays, const Tiling& tiling,
                                           const TilePlace& place, int64_t row) {
  return {load_row<N>(arrays.src, tiling, place, row), load_row<N>(arrays.diff_dst, tiling, place, row)};
}

/// diff_src = scale * gradient + slope * (x - mean) + offset.
struct Line {
  float* slope;
  float* offset;

  /// Computes a channel's slope and offset from its gradient sums. `rows` is the number of rows over which
  /// the statistics were computed.
  template <class T>
  __device__ void set(const BackwardArrays<T>& arrays, int64_t c, double sum, double product,
                      double rows) const {
    const math::GradientLine found =
        math::gradient_line(static_cast<double>(arrays.kept.scale[c]),
                            static_cast<double>(inverse_deviation(arrays.variance[c], arrays.epsilon)),
                            static_cast<double>(arrays.kept.residual[c]), sum, product, rows);
    slope[c] = found.slope;
    offset[c] = found.offset;
  }
};

/// The arrays, of [channels], to which the gradients of the parameters and the contributions to the moving
/// averages are written.
struct ParameterGradients {
  float *gamma, *beta, *mean, *variance;
  float share;
};

/// Computes a channel's gradients from the sum of the gradients and the sum of the gradients times (x -
/// mean).
template <class T>
struct FinishGradients {
  int64_t rows, channels;
  BackwardArrays<T> arrays;
  ParameterGradients to;
  Line line;
  double* mine;  // if not null, receives this replica's gradient sums, and `line` is not written

  __device__ void operator()(int64_t c, const SumPair& sums) const {
    const float inverse = inverse_deviation(arrays.variance[c], arrays.epsilon);
    const auto residual = static_cast<double>(arrays.kept.residual[c]);
    const double by_gamma = (sums.second - residual * sums.first) * static_cast<double>(inverse);
    if (to.gamma) to.gamma[c] = static_cast<float>(by_gamma);
    if (to.beta) to.beta[c] = static_cast<float>(sums.first);
    to.mean[c] = to.share * arrays.mean[c];
    to.variance[c] = to.share * arrays.variance[c];
    if (!mine) return line.set(arrays, c, sums.first, by_gamma, static_cast<double>(rows));
    mine[c] = sums.first;
    mine[channels + c] = by_gamma;
  }
};

template <int N, bool kRelu, class T>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks)
    gradient_sums_kernel(Tiling tiling, double* partials, unsigned* arrived, FinishGradients<T> finish) {
  const BackwardArrays<T>& arrays = finish.arrays;
  const TilePlace place = place_in<N>(tiling);
  ChannelGradients<N> sums = {};
  if (place.any) {
    const BackwardChannels<N, kRelu, T> channels(arrays, place.channel);
    read_ahead<2>(
        place.row, tiling.rows, place.stride,
        [&](int64_t row) { return load_backward<N>(arrays, tiling, place, row); },
        [&](int64_t, const BackwardRow<N, T>& values) {
#pragma unroll
          for (int i = 0; i < N; ++i) {
            const float x = values.x[i] - channels.means.v[i];
            const float gradient = channels.gradient(i, x, values.diff[i]);
            sums.gradients[i] += gradient;
            sums.products[i] += gradient * x;
          }
        });
  }
  leave_channel_sums(sums, tiling, partials, [](int64_t) { return 0.0f; });
  finish_if_last<N>(tiling, partials, arrived, finish);
}

/// Computes slope and offset (Line) of each channel from the gradient sums of all replicas. Each thread
/// processes one channel.
template <class T>
__global__ void __launch_bounds__(kTileThreads, 1)
    join_gradient_sums_kernel(int64_t channels, int replicas, const double* all, BackwardArrays<T> arrays,
                              const double* rows, Line line) {
  const int64_t c = thread_index();
  if (c >= channels) return;
  double sum = 0, product = 0;
  for (int replica = 0; replica < replicas; ++replica) {
    const double* sums = all + replica * math::gradient_sums_size(channels);
    sum += sums[c];
    product += sums[channels + c];
  }
  line.set(arrays, c, sum, product, *rows);
}

/// diff_src may be diff_dst: the same thread reads each element before it writes it. If kMasked is true, the
/// rows with mask 0 did not influence the statistics, so they get no gradient through the statistics.
template <int N, bool kRelu, bool kMasked, class T>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks)
    diff_src_kernel(Tiling tiling, BackwardArrays<T> arrays, Line line, const uint8_t* mask, T* diff_src) {
  const TilePlace place = place_in<N>(tiling);
  if (!place.any) return;
  const BackwardChannels<N, kRelu, T> channels(arrays, place.channel);
  const Floats<N> slopes = load_channels<N>(line.slope, place.channel, 0.0f);
  const Floats<N> offsets = load_channels<N>(line.offset, place.channel, 0.0f);
  read_ahead<2>(
      place.row, tiling.rows, place.stride,
      [&](int64_t row) {
        BackwardRow<N, T> values = load_backward<N>(arrays, tiling, place, row);
        if constexpr (kMasked) values.counts = mask[row] != 0;
        return values;
      },
      [&](int64_t row, const BackwardRow<N, T>& values) {
        Floats<N> diff;
#pragma unroll
        for (int i = 0; i < N; ++i) {
          const float x = values.x[i] - channels.means.v[i];
          const float gradient = channels.gradient(i, x, values.diff[i]);
          const float by_statistics = values.counts ? slopes.v[i] * x + offsets.v[i] : 0.0f;
          diff.v[i] = channels.scales.v[i] * gradient + by_statistics;
        }
        store<N>(diff_src + row * tiling.channels + place.channel, diff.v);
      });
}

}  // namespace dtrain::cuda
