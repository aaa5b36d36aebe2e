// Two sums for each channel over the rows of [rows, channels], in double precision and in an order that is
// always the same: blocks leave theirs in `partials`, [row blocks, channels, 2], and the next kernel adds
// them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "ops/cuda/launch.h"
#include "ops/cuda/reduce.h"

namespace dtrain::cuda {

/// How blocks of kTileThreads share rows and channels: side by side `across` threads (a power of 2, a warp at
/// most) of some channels each, below them threads of further rows. blockIdx.x counts tiles of channels,
/// blockIdx.y row blocks.
struct Tiling {
  int64_t rows, channels;
  int across;
  unsigned tiles, row_blocks;

  dim3 grid() const { return {tiles, row_blocks}; }
};

/// Threads of a block, and the blocks that a multiprocessor is to have at a time (__launch_bounds__): with 4,
/// kernels of 8 channels a thread spill registers.
inline constexpr int kTileThreads = 256, kTileBlocks = 3;

/// For N channels a thread. So many row blocks that a thread sums no more than kMostRows in float32, and the
/// device is busy.
inline Tiling tiling_of(int64_t rows, int64_t channels, int N, int multiprocessors) {
  constexpr int64_t kFewRows = 4, kMostRows = 256, kMostBlocks = 65535;
  const int64_t vectors = (channels + N - 1) / N;
  const int64_t across = std::bit_ceil(static_cast<uint64_t>(std::min<int64_t>(vectors, kWarp)));
  const int64_t down = kTileThreads / across, tiles = (vectors + across - 1) / across;
  const auto blocks = [&](int64_t rows_each) { return (rows + down * rows_each - 1) / (down * rows_each); };
  const int64_t busy = (kTileBlocks * multiprocessors + tiles - 1) / tiles;
  const int64_t row_blocks = std::max(std::min(blocks(kFewRows), busy), blocks(kMostRows));
  return {rows, channels, static_cast<int>(across), static_cast<unsigned>(tiles),
          static_cast<unsigned>(std::clamp<int64_t>(row_blocks, 1, kMostBlocks))};
}

/// This thread's channels [channel, channel + N) and rows.
struct TilePlace {
  int64_t channel, row, stride;
  bool any;  // whether it has channels and rows at all
};

template <int N>
__device__ TilePlace place_in(const Tiling& tiling) {
  const int x = static_cast<int>(threadIdx.x) % tiling.across,
            y = static_cast<int>(threadIdx.x) / tiling.across;
  const int64_t down = kTileThreads / tiling.across;
  const int64_t channel = (int64_t{blockIdx.x} * tiling.across + x) * N, row = blockIdx.y * down + y;
  return {channel, row, gridDim.y * down, channel < tiling.channels && row < tiling.rows};
}

/// Leaves the block's sums. Of all threads; `sums` are those of this thread's channels.
template <int N>
__device__ void leave_channel_sums(double (&sums)[N][2], const Tiling& tiling, double* partials) {
  constexpr int kWarps = kTileThreads / kWarp;
  __shared__ double of_warps[kWarps][kWarp * N][2];
  // Lanes a multiple of `across` apart have the same channels.
  for (int distance = kWarp / 2; distance >= tiling.across; distance /= 2) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      sums[i][0] += __shfl_xor_sync(kAllLanes, sums[i][0], distance);
      sums[i][1] += __shfl_xor_sync(kAllLanes, sums[i][1], distance);
    }
  }
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  if (lane < tiling.across) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      of_warps[warp][lane * N + i][0] = sums[i][0];
      of_warps[warp][lane * N + i][1] = sums[i][1];
    }
  }
  __syncthreads();
  const int width = tiling.across * N;
  for (int c = static_cast<int>(threadIdx.x); c < width; c += kTileThreads) {
    const int64_t channel = int64_t{blockIdx.x} * width + c;
    if (channel >= tiling.channels) continue;
    double first = 0, second = 0;
    for (int w = 0; w < kWarps; ++w) {
      first += of_warps[w][c][0];
      second += of_warps[w][c][1];
    }
    double* partial = partials + (blockIdx.y * tiling.channels + channel) * 2;
    partial[0] = first;
    partial[1] = second;
  }
}

/// Blocks that finish sums: kWarp channels each, and as many threads for each of them.
inline constexpr int kFinishThreads = kWarp * kWarp;
inline unsigned finish_blocks(const Tiling& tiling) {
  return static_cast<unsigned>((tiling.channels + kWarp - 1) / kWarp);
}

struct ChannelSums {
  int64_t channel;
  bool mine;  // whether this thread is the one that has the channel's sums
  double first, second;
};

/// Of all threads of such blocks.
__device__ inline ChannelSums finished_sums(const Tiling& tiling, const double* partials) {
  __shared__ double of_parts[kWarp][kWarp][2];
  const int lane = static_cast<int>(threadIdx.x) % kWarp, part = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t channel = int64_t{blockIdx.x} * kWarp + lane;
  double first = 0, second = 0;
  if (channel < tiling.channels) {
    for (int64_t b = part; b < tiling.row_blocks; b += kWarp) {
      const double* partial = partials + (b * tiling.channels + channel) * 2;
      first += partial[0];
      second += partial[1];
    }
  }
  of_parts[part][lane][0] = first;
  of_parts[part][lane][1] = second;
  __syncthreads();
  const bool mine = part == 0 && channel < tiling.channels;
  if (mine) {
    for (int p = 1; p < kWarp; ++p) {
      first += of_parts[p][lane][0];
      second += of_parts[p][lane][1];
    }
  }
  return {channel, mine, first, second};
}

}  // namespace dtrain::cuda
