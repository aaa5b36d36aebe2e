// Batch normalization with a mask: statistics over the rows that are not masked, and the gradient of the
// input.
#pragma once

#include "ops/cuda/normalization/batch_normalization_kernels.h"

namespace dtrain::cuda {

/// Number of threads per block. The lanes of a warp read neighboring channels of a row, and the warps of a
/// block read different rows. A block computes the sums of its channels over all rows.
inline constexpr int kMaskedThreads = 256;

/// Adds the values of the lanes with the same index in all warps of the block. All threads of the block must
/// call this function; every thread gets the sum for its lane.
__device__ inline double sum_over_warps(double value) {
  __shared__ double parts[kMaskedThreads];
  parts[threadIdx.x] = value;
  __syncthreads();
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x % kWarp); i < kMaskedThreads; i += kWarp) sum += parts[i];
  __syncthreads();
  return sum;
}

/// Writes the moments of the rows with mask 1 (math::moments_size).
template <class T>
__global__ void __launch_bounds__(kMaskedThreads)
    masked_moments_kernel(int64_t rows, int64_t channels, const T* src, const uint8_t* mask, double* mine) {
  const int64_t c = int64_t{blockIdx.x} * kWarp + threadIdx.x % kWarp;
  const auto first = static_cast<int64_t>(threadIdx.x / kWarp);
  constexpr int64_t kStep = kMaskedThreads / kWarp;
  const bool any = c < channels;
  double count = 0, sum = 0;
  for (int64_t row = first; row < rows; row += kStep) {
    if (!mask[row]) continue;
    count += 1;
    if (any) sum += static_cast<double>(to_float(src[row * channels + c]));
  }
  count = sum_over_warps(count);
  sum = sum_over_warps(sum);
  const double mean = count > 0 ? sum / count : 0;
  double squares = 0;
  for (int64_t row = first; row < rows; row += kStep) {
    if (!any || !mask[row]) continue;
    const double distance = static_cast<double>(to_float(src[row * channels + c])) - mean;
    squares += distance * distance;
  }
  squares = sum_over_warps(squares);
  if (!any || first > 0) return;
  if (c == 0) mine[0] = count;
  mine[1 + c] = mean;
  mine[1 + channels + c] = squares;
}

/// Computes diff_src for batch normalization with a mask. Masked rows do not influence the statistics, so
/// they get no gradient through the statistics. diff_src may be diff_dst.
template <bool kRelu, class T>
struct MaskedGradient {
  BackwardArrays<T> arrays;
  Line line;
  const uint8_t* mask;
  T* diff_src;
  int64_t channels;

  template <int N>
  __device__ void run(int64_t i) const {
    const Division at = divide(i, channels);
    const int64_t c = at.rest;
    const BackwardChannels<1, kRelu, T> own(arrays, c);
    const float x = to_float(arrays.src[i]) - own.means.v[0];
    float diff = own.scales.v[0] * own.gradient(0, x, to_float(arrays.diff_dst[i]));
    if (mask[at.quotient]) diff += line.slope[c] * x + line.offset[c];
    diff_src[i] = from_float<T>(diff);
  }
};

}  // namespace dtrain::cuda
