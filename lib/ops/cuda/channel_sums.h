// Two sums for each channel over the rows of [rows, channels], in an order that is always the same.
//
// A thread sums its rows in float32. The threads of a block combine their values in float32, too: float64
// would be slow on GPUs that are not made for it. One thread for each channel then writes the block's two
// sums in float64 to `partials`, [row blocks, channels, 2]. These are added, and used, by the last block of
// each tile of channels to arrive, or where they are many, by a kernel of their own (sum_in_order).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "ops/cuda/launch.h"
#include "ops/cuda/read_ahead.h"
#include "ops/cuda/reduce.h"

namespace dtrain::cuda {

/// How blocks of kTileThreads share rows and channels: side by side `across` threads (a power of 2, a warp at
/// most) of some channels each, below them threads of further rows. blockIdx.x counts tiles of channels,
/// blockIdx.y row blocks.
struct Tiling {
  int64_t rows, channels;
  int across;
  unsigned tiles, row_blocks;
  bool last_block_finishes;  // or a kernel of its own does

  dim3 grid() const { return {tiles, row_blocks}; }
};

/// Threads of a block, and the blocks that a multiprocessor is to have at a time (__launch_bounds__): with 4,
/// kernels of 8 channels a thread spill registers.
inline constexpr int kTileThreads = 256, kTileBlocks = 3;

/// Tiles at most where the last block of each finishes; the kernel's `arrived` counts their blocks.
inline constexpr int kMostArrivals = 1024;

/// For N channels a thread. So many row blocks that a thread sums no more than kMostRows in float32, and the
/// device is busy. Of small arrays so few that the last one has little to add.
inline Tiling tiling_of(int64_t rows, int64_t channels, int N, int multiprocessors) {
  constexpr int64_t kFewRows = 4, kSomeRows = 32, kMostRows = 256, kMostBlocks = 65535;
  constexpr int64_t kFewPartials = 16 * kTileThreads;  // of a tile, for its last block
  const int64_t vectors = (channels + N - 1) / N;
  const int64_t across = std::bit_ceil(static_cast<uint64_t>(std::min<int64_t>(vectors, kWarp)));
  const int64_t down = kTileThreads / across, tiles = (vectors + across - 1) / across;
  const auto blocks = [&](int64_t rows_each) { return (rows + down * rows_each - 1) / (down * rows_each); };
  const int64_t busy = (kTileBlocks * multiprocessors + tiles - 1) / tiles;
  const int64_t wanted = std::max(std::min(blocks(kFewRows), busy), blocks(kMostRows));
  const int64_t few = std::min(wanted, kFewPartials / (across * N));
  const bool last_block_finishes = few >= blocks(kSomeRows) && tiles <= kMostArrivals;
  const int64_t row_blocks = std::clamp<int64_t>(last_block_finishes ? few : wanted, 1, kMostBlocks);
  return {rows,
          channels,
          static_cast<int>(across),
          static_cast<unsigned>(tiles),
          static_cast<unsigned>(row_blocks),
          last_block_finishes};
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

/// Two sums of a channel.
struct SumPair {
  double first, second;
};

/// Of N channels: how many values each has, their means as the sums of two floats each, and the sums of
/// their squared distances from them.
template <int N>
struct ChannelMoments {
  float count, mean[N], rest[N], squares[N];

  /// Combines as math::Moments::add does, in float32: the means' distances are small beside large means.
  __device__ void add(const ChannelMoments& other) {
    if (count == 0.0f) {
      *this = other;
      return;
    }
    const float total = count + other.count, share = other.count / total, weight = count * share;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float distance = (other.mean[i] - mean[i]) + (other.rest[i] - rest[i]);
      squares[i] += other.squares[i] + distance * distance * weight;
      set_mean(i, mean[i], rest[i] + distance * share);
    }
    count = total;
  }
  /// Channel i's mean becomes a + b: mean[i] is their rounded sum, rest[i] its error (D. Knuth's TwoSum).
  __device__ void set_mean(int i, float a, float b) {
    const float sum = a + b, added = sum - a;
    rest[i] = (a - (sum - added)) + (b - added);
    mean[i] = sum;
  }
  __device__ ChannelMoments<1> channel(int i) const {
    return {count, {mean[i]}, {rest[i]}, {squares[i]}};
  }
  /// Sums of the distances from `origin` and of their squares.
  __device__ SumPair sums(float origin) const {
    const double n = static_cast<double>(count);
    const double offset =
        (static_cast<double>(mean[0]) - static_cast<double>(origin)) + static_cast<double>(rest[0]);
    return {n * offset, static_cast<double>(squares[0]) + n * offset * offset};
  }
};

/// Of N channels: the sums of gradients, and of their products with a distance.
template <int N>
struct ChannelGradients {
  float gradients[N], products[N];

  __device__ void add(const ChannelGradients& other) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      gradients[i] += other.gradients[i];
      products[i] += other.products[i];
    }
  }
  __device__ ChannelGradients<1> channel(int i) const {
    return {{gradients[i]}, {products[i]}};
  }
  __device__ SumPair sums(float) const {
    return {static_cast<double>(gradients[0]), static_cast<double>(products[0])};
  }
};

/// The value of the lane whose index differs by the bits of `distance`. Value consists of floats.
template <class Value>
__device__ Value shuffled(const Value& value, int distance) {
  constexpr int kFloats = static_cast<int>(sizeof(Value) / sizeof(float));
  Value other;
#pragma unroll
  for (int i = 0; i < kFloats; ++i) {
    reinterpret_cast<float*>(&other)[i] =
        __shfl_xor_sync(kAllLanes, reinterpret_cast<const float*>(&value)[i], distance);
  }
  return other;
}

/// Writes the block's sums to partials. Of all threads; `mine` is of this thread's N channels, and
/// origin(channel) what the sums of a channel are relative to.
template <int N, template <int> class Values, class Origin>
__device__ void leave_channel_sums(Values<N> mine, const Tiling& tiling, double* partials,
                                   const Origin& origin) {
  constexpr int kWarps = kTileThreads / kWarp;
  __shared__ Values<N> of_warps[kWarps][kWarp];
  // Lanes a multiple of `across` apart have the same channels.
  for (int distance = kWarp / 2; distance >= tiling.across; distance /= 2) mine.add(shuffled(mine, distance));
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  if (lane < tiling.across) of_warps[warp][lane] = mine;
  __syncthreads();
  const int width = tiling.across * N;
  for (int c = static_cast<int>(threadIdx.x); c < width; c += kTileThreads) {
    const int64_t channel = int64_t{blockIdx.x} * width + c;
    if (channel >= tiling.channels) continue;
    Values<1> whole = of_warps[0][c / N].channel(c % N);
    for (int w = 1; w < kWarps; ++w) whole.add(of_warps[w][c / N].channel(c % N));
    const SumPair sums = whole.sums(origin(channel));
    reinterpret_cast<double2*>(partials)[blockIdx.y * tiling.channels + channel] = {sums.first, sums.second};
  }
}

/// finish(channel, sums), by one thread each, for the `width` channels from `first` on. Of all kThreads of
/// the block; width is a power of two, kThreads at most.
template <int kThreads, class Finish>
__device__ void sum_in_order(const Tiling& tiling, const double* partials, int64_t first, int width,
                             const Finish& finish) {
  __shared__ double of_parts[kThreads][2];
  const int thread = static_cast<int>(threadIdx.x);
  const int c = thread % width, part = thread / width, parts = kThreads / width;
  const int64_t channel = first + c;
  const bool any = channel < tiling.channels;
  SumPair sums{};
  const auto add = [&](double a, double b) {
    sums.first += a;
    sums.second += b;
  };
  read_ahead<4>(
      part, any ? tiling.row_blocks : 0, parts,
      // Not from the L1 cache: the values were written by other multiprocessors while this kernel ran.
      [&](int64_t b) {
        return __ldcg(reinterpret_cast<const double2*>(partials) + (b * tiling.channels + channel));
      },
      [&](int64_t, const double2& partial) { add(partial.x, partial.y); });
  of_parts[thread][0] = sums.first;
  of_parts[thread][1] = sums.second;
  __syncthreads();
  if (part != 0 || !any) return;
  for (int p = 1; p < parts; ++p) add(of_parts[p * width + c][0], of_parts[p * width + c][1]);
  finish(channel, sums);
}

/// The end of a kernel that leaves sums, of all threads: the last block of a tile finishes its channels.
/// `arrived`: zeros, one for each tile, which are zeros again when the kernel ends; null: a kernel of its own
/// finishes.
template <int N, class Finish>
__device__ void finish_if_last(const Tiling& tiling, const double* partials, unsigned* arrived,
                               const Finish& finish) {
  if (!arrived) return;
  __shared__ bool last;
  __threadfence();  // this thread's sums are to be seen before its block is counted
  __syncthreads();
  if (threadIdx.x == 0) last = atomicInc(arrived + blockIdx.x, gridDim.y - 1) == gridDim.y - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  const int width = tiling.across * N;
  sum_in_order<kTileThreads>(tiling, partials, int64_t{blockIdx.x} * width, width, finish);
}

/// Blocks that finish sums: kWarp channels each, and as many threads for each of them.
inline constexpr int kFinishThreads = kWarp * kWarp;
template <class Finish>
__global__ void __launch_bounds__(kFinishThreads, 1)
    finish_kernel(Tiling tiling, const double* partials, Finish finish) {
  sum_in_order<kFinishThreads>(tiling, partials, int64_t{blockIdx.x} * kWarp, kWarp, finish);
}

/// Enqueues sum_kernel(tiling, ..., partials, arrived, finish), and what finishes its sums.
template <class Finish, class Launch>
void launch_sums(const Tiling& tiling, double* partials, unsigned* arrived, const Finish& finish,
                 cudaStream_t stream, const Launch& launch_kernel) {
  launch_kernel(tiling.last_block_finishes ? arrived : nullptr);
  if (tiling.last_block_finishes) return;
  const auto blocks = static_cast<unsigned>((tiling.channels + kWarp - 1) / kWarp);
  launch(finish_kernel<Finish>, blocks, kFinishThreads, stream, tiling, partials, finish);
}

}  // namespace dtrain::cuda
