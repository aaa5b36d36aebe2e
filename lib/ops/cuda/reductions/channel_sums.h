// Computes two sums per channel over the rows of a [rows, channels] array, in a fixed order.
//
// 1. Each thread sums its rows in float32. The threads of a block also combine their values in float32,
//    because float64 is slow on many GPUs.
// 2. One thread per channel writes the block's two sums in float64 to `partials`, [row blocks, channels, 2].
// 3. For each tile of channels, the block that finishes last adds the partial sums and uses the result. If
//    there are many partial sums, a separate kernel does this instead (sum_in_order).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "ops/cuda/launch.h"
#include "ops/cuda/read_ahead.h"
#include "ops/cuda/reductions/reduce.h"

namespace dtrain::cuda {

/// The division of rows and channels among blocks of kTileThreads threads. The channels are divided into
/// tiles. In a block, each row of `across` threads (a power of 2, at most a warp) covers the channels of one
/// tile, N channels per thread; the rows of threads process different rows of the array. blockIdx.x is the
/// index of the tile, and blockIdx.y is the index of the row block.
struct Tiling {
  int64_t rows, channels;
  int across;
  unsigned tiles, row_blocks;
  bool last_block_finishes;  // true if the last block adds the partial sums; false if a separate kernel does

  dim3 grid() const { return {tiles, row_blocks}; }
};

/// Number of threads per block, and minimum number of blocks per multiprocessor (__launch_bounds__). With 4
/// blocks instead of 3, kernels with 8 channels per thread would spill registers.
inline constexpr int kTileThreads = 256, kTileBlocks = 3;

/// If there are more tiles than this, a separate kernel finishes the sums, instead of the last block of each
/// tile. The limit exists because `arrived` has one block counter per tile.
inline constexpr int kMostArrivals = 1024;

/// Returns the tiling for N channels per thread. There are enough row blocks to keep the device busy and to
/// limit a thread to kMostRows rows, because it sums them in float32. For small arrays, there are only a few
/// row blocks, so that the last block has few partial sums to add.
inline Tiling tiling_of(int64_t rows, int64_t channels, int N, int multiprocessors) {
  constexpr int64_t kFewRows = 4, kSomeRows = 32, kMostRows = 256, kMostBlocks = 65535;
  constexpr int64_t kFewPartials = 16 * kTileThreads;  // partial sums of a tile that its last block can add
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

/// The part of the array that one thread processes: channels [channel, channel + N) of rows `row`, row +
/// stride, and so on.
struct TilePlace {
  int64_t channel, row, stride;
  bool any;  // false if the thread has no channels or no rows
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

/// Moments of N channels: the number of values per channel, the means as sums of two floats (mean + rest),
/// and the sums of squared distances from the mean.
template <int N>
struct ChannelMoments {
  float count, mean[N], rest[N], squares[N];

  /// Combines the moments with those of `other`, like math::Moments::add() but in float32. Float32 is precise
  /// enough, because only the difference of the means is used, which is small even if the means are large.
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
  /// Sets the mean and the squares of channel i from the sum of the distances of `count` values from
  /// `origin`, and from the sum of the squares of these distances. `share` is 1 / count.
  __device__ void set(int i, float origin, float distances, float distance_squares, float share) {
    const float distance = distances * share;
    set_mean(i, origin, distance);
    squares[i] = distance_squares - distances * distance;
  }
  /// Sets the mean of channel i to a + b without a rounding error: mean[i] is the rounded sum, and rest[i] is
  /// the rounding error (D. Knuth's TwoSum).
  __device__ void set_mean(int i, float a, float b) {
    const float sum = a + b, added = sum - a;
    rest[i] = (a - (sum - added)) + (b - added);
    mean[i] = sum;
  }
  __device__ ChannelMoments<1> channel(int i) const {
    return {count, {mean[i]}, {rest[i]}, {squares[i]}};
  }
  /// Returns, for channel 0, the sum of the distances of the values from `origin` and the sum of the squares
  /// of these distances.
  __device__ SumPair sums(float origin) const {
    const double n = static_cast<double>(count);
    const double offset =
        (static_cast<double>(mean[0]) - static_cast<double>(origin)) + static_cast<double>(rest[0]);
    return {n * offset, static_cast<double>(squares[0]) + n * offset * offset};
  }
};

/// Gradient sums of N channels: the sums of the gradients, and the sums of the gradients times (x - mean).
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

/// Returns the value of another lane: the lane whose index is this lane's index XOR `distance`. Value must
/// consist of floats.
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

/// Writes the block's sums to `partials`. All threads of the block must call this function. `mine` holds this
/// thread's values for its N channels. origin(channel) returns the origin from which Values::sums() measures
/// the values of a channel.
template <int N, template <int> class Values, class Origin>
__device__ void leave_channel_sums(Values<N> mine, const Tiling& tiling, double* partials,
                                   const Origin& origin) {
  constexpr int kWarps = kTileThreads / kWarp;
  __shared__ Values<N> of_warps[kWarps][kWarp];
  // Lanes whose distance is a multiple of `across` have the same channels, so their values are combined.
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

/// Adds the partial sums of the channels [first, first + width) in a fixed order, and calls finish(channel,
/// sums) in one thread per channel. All kThreads threads of the block must call this function. `width` must
/// be a power of two and at most kThreads.
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
      // Bypasses the L1 cache, because other multiprocessors wrote these values while this kernel was
      // running.
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

/// All threads must call this function at the end of a kernel that has written partial sums. For each tile,
/// the block that finishes last adds the partial sums of the tile and calls `finish` for the tile's channels.
/// `arrived` has one counter per tile; the counters must be 0 before the kernel and are 0 after it. If
/// `arrived` is null, does nothing, because a separate kernel will finish the sums.
template <int N, class Finish>
__device__ void finish_if_last(const Tiling& tiling, const double* partials, unsigned* arrived,
                               const Finish& finish) {
  if (!arrived) return;
  __shared__ bool last;
  __threadfence();  // makes this thread's sums visible to other blocks before its block is counted
  __syncthreads();
  if (threadIdx.x == 0) last = atomicInc(arrived + blockIdx.x, gridDim.y - 1) == gridDim.y - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  const int width = tiling.across * N;
  sum_in_order<kTileThreads>(tiling, partials, int64_t{blockIdx.x} * width, width, finish);
}

/// Threads per block of finish_kernel: a block finishes kWarp channels, with kWarp threads per channel.
inline constexpr int kFinishThreads = kWarp * kWarp;
template <class Finish>
__global__ void __launch_bounds__(kFinishThreads, 1)
    finish_kernel(Tiling tiling, const double* partials, Finish finish) {
  sum_in_order<kFinishThreads>(tiling, partials, int64_t{blockIdx.x} * kWarp, kWarp, finish);
}

/// Calls launch_kernel(arrived), which must enqueue the kernel that computes the partial sums. If the last
/// blocks of that kernel do not finish the sums, also enqueues finish_kernel.
template <class Finish, class Launch>
void launch_sums(const Tiling& tiling, double* partials, unsigned* arrived, const Finish& finish,
                 cudaStream_t stream, const Launch& launch_kernel) {
  launch_kernel(tiling.last_block_finishes ? arrived : nullptr);
  if (tiling.last_block_finishes) return;
  const auto blocks = static_cast<unsigned>((tiling.channels + kWarp - 1) / kWarp);
  launch(finish_kernel<Finish>, blocks, kFinishThreads, stream, tiling, partials, finish);
}

}  // namespace dtrain::cuda
