// Statistics of batch normalization over the rows that are not masked.
#pragma once

#include "ops/cuda/normalization/batch_normalization_kernels.h"

namespace dtrain::cuda {

inline constexpr int kCountThreads = 1024;

/// Writes the number of rows with mask 1. Runs with one block.
__global__ static void __launch_bounds__(kCountThreads, 1)
    count_rows_kernel(int64_t rows, const uint8_t* mask, double* count) {
  double mine = 0;
  read_ahead<8>(
      threadIdx.x, rows, kCountThreads, [&](int64_t row) { return mask[row]; },
      [&](int64_t, uint8_t valid) { mine += valid != 0; });
  mine = block_reduce<true>(mine, Add{});
  if (threadIdx.x == 0) *count = mine;
}

/// Computes a channel's moments from the sum of its values and the sum of their squares, and writes them to
/// `mine` (math::moments_size). The number of values, mine[0], must have been written before.
struct FinishMaskedStatistics {
  int64_t channels;
  double* mine;

  __device__ void operator()(int64_t c, const SumPair& sums) const {
    const double n = mine[0], mean = n > 0 ? sums.first / n : 0, squares = sums.second - sums.first * mean;
    mine[1 + c] = mean;
    mine[1 + channels + c] = squares < 0 ? 0 : squares;
  }
};

/// The values that a thread of masked_statistics_kernel loads from one row.
template <int N, class T>
struct MaskedRow {
  Raw<N, T> x;
  uint8_t valid;
};

/// Like statistics_kernel, for the rows with mask 1. Each thread sums the distances from its first element
/// that is not masked. The sums of the blocks are not relative to an element of src, because the first row
/// may be masked. In float64, they are precise nevertheless.
template <int N, class T>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks)
    masked_statistics_kernel(Tiling tiling, const T* src, const uint8_t* mask, double* partials,
                             unsigned* arrived, FinishMaskedStatistics finish) {
  const TilePlace place = place_in<N>(tiling);
  ChannelMoments<N> moments = {};
  if (place.any) {
    Raw<N, T> own = {};
    float distances[N] = {}, squares[N] = {};
    read_ahead<4>(
        place.row, tiling.rows, place.stride,
        [&](int64_t row) {
          return MaskedRow<N, T>{load_row<N>(src, tiling, place, row), mask[row]};
        },
        [&](int64_t, const MaskedRow<N, T>& row) {
          if (row.valid == 0) return;
          if (moments.count == 0.0f) own = row.x;
          moments.count += 1.0f;
#pragma unroll
          for (int i = 0; i < N; ++i) {
            const float distance = row.x[i] - own[i];
            distances[i] += distance;
            squares[i] += distance * distance;
          }
        });
    if (moments.count > 0.0f) {
      const float share = 1.0f / moments.count;
#pragma unroll
      for (int i = 0; i < N; ++i) moments.set(i, own[i], distances[i], squares[i], share);
    }
  }
  leave_channel_sums(moments, tiling, partials, [](int64_t) { return 0.0f; });
  finish_if_last<N>(tiling, partials, arrived, finish);
}

}  // namespace dtrain::cuda
