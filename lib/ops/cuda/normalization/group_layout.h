// How the kernels of group normalization divide an array among blocks and threads, and how they combine the
// values of the threads of a group.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/cuda/reductions/channel_sums.h"
#include "ops/cuda/vector.h"

namespace dtrain::cuda {

/// Number of threads per block, and minimum number of blocks per multiprocessor (__launch_bounds__).
inline constexpr int kGroupThreads = 256, kGroupBlocks = 3;

/// The division of a [samples, pixels, channels] array, whose channels are divided into `groups` groups of
/// adjacent channels. A block processes `of_block` adjacent groups of a sample at a time. In each pixel,
/// `lanes` neighboring threads share a group, and each of them accesses vectors of N channels. `down` rows of
/// threads process different pixels. If there are too few groups for the device, the pixels are divided into
/// `parts` parts: the blocks with the same blockIdx.x process the parts of the same groups, and blockIdx.y is
/// the index of the part.
struct GroupLayout {
  int64_t samples, pixels, channels, groups;
  int64_t width;  // channels of a group
  int of_block, lanes, down;
  int64_t blocks_of_sample;
  int64_t parts, part_pixels;

  dim3 grid(int multiprocessors) const {
    return {blocks_for(samples * blocks_of_sample, 1, multiprocessors), static_cast<unsigned>(parts)};
  }
  __device__ float share() const { return 1.0f / static_cast<float>(pixels * width); }
};

/// Returns the layout for vectors of N channels with `bytes` bytes each. A group has at most `most_parts`
/// parts.
///
/// Blocks process several groups for two reasons. First, a block should access at least kPixelBytes adjacent
/// bytes per pixel, because the memory transfers whole sectors. Second, each thread should have a pixel.
inline GroupLayout group_layout(int64_t samples, int64_t pixels, int64_t channels, int64_t groups, int N,
                                int64_t bytes, int multiprocessors, int64_t most_parts) {
  constexpr int64_t kPixelBytes = 64, kMostLanes = 64, kPixelsOfThread = 8, kMostParts = 512;
  const auto rounded_up = [](int64_t a, int64_t b) { return (a + b - 1) / b; };  // a / b
  const int64_t width = channels / groups, vectors = width / N;
  const int64_t wanted =
      std::max(rounded_up(kPixelBytes, vectors * bytes), kGroupThreads / (vectors * pixels));
  const int64_t fitting = std::max<int64_t>(std::min(groups, kGroupThreads / vectors), 1);
  const int64_t of_block = std::min(wanted, fitting);
  // If a group has many vectors per pixel, each thread processes several of them.
  const int64_t lanes = of_block > 1 ? vectors : rounded_up(vectors, rounded_up(vectors, kMostLanes));
  const int64_t down = kGroupThreads / (lanes * of_block), blocks_of_sample = rounded_up(groups, of_block);
  const int64_t blocks = samples * blocks_of_sample;
  int64_t parts = 1;
  if (blocks < 2 * multiprocessors) {
    const int64_t worthwhile = std::min(pixels / (down * kPixelsOfThread), kMostParts);
    parts = std::max<int64_t>(std::min({rounded_up(4 * multiprocessors, blocks), worthwhile, most_parts}), 1);
  }
  const int64_t part_pixels = rounded_up(pixels, parts);
  return {samples,
          pixels,
          channels,
          groups,
          width,
          static_cast<int>(of_block),
          static_cast<int>(lanes),
          static_cast<int>(down),
          blocks_of_sample,
          rounded_up(pixels, part_pixels),
          part_pixels};
}

/// The part of a block's groups that one thread processes.
struct GroupPlace {
  int groups;              // number of groups of the block
  int slot;                // index of the thread's group in the block
  int member;              // index of the thread among the threads of its group
  bool any;                // false if the thread has no group
  int64_t bundle;          // index of the block's first group; groups are numbered across all samples
  int64_t first, channel;  // index of the first element of the thread's group, and its first channel
  int64_t column;          // the thread's first channel, relative to the group's first channel
  int64_t pixel, end;      // the thread processes pixels in [pixel, end) with a stride of GroupLayout::down

  /// Returns the index of the thread's group, counted across all samples.
  __device__ int64_t group() const { return bundle + slot; }
  /// Returns whether this thread writes the results that exist once per group, such as the mean.
  __device__ bool leads() const { return any && member == 0; }
};

/// Calls use(place) for the groups of this block. All threads make the same number of calls.
template <int N, class Use>
__device__ void each_place(const GroupLayout& layout, const Use& use) {
  const int thread = static_cast<int>(threadIdx.x), across = layout.lanes * layout.of_block;
  const int x = thread % across, y = thread / across, slot = x / layout.lanes, lane = x % layout.lanes;
  const int64_t first_pixel = blockIdx.y * layout.part_pixels, last_pixel = first_pixel + layout.part_pixels;
  for (int64_t b = blockIdx.x; b < layout.samples * layout.blocks_of_sample; b += gridDim.x) {
    const Division at = divide(b, layout.blocks_of_sample);
    const int64_t sample = at.quotient, group = at.rest * layout.of_block, left = layout.groups - group;
    GroupPlace place;
    place.groups = left < layout.of_block ? static_cast<int>(left) : layout.of_block;
    place.any = y < layout.down && slot < place.groups;
    place.slot = place.any ? slot : 0;
    place.member = y * layout.lanes + lane;
    place.bundle = sample * layout.groups + group;
    place.channel = (group + place.slot) * layout.width;
    place.first = sample * layout.pixels * layout.channels + place.channel;
    place.column = int64_t{lane} * N;
    place.pixel = first_pixel + y;
    place.end = !place.any ? 0 : last_pixel < layout.pixels ? last_pixel : layout.pixels;
    use(place);
  }
}

/// Calls use(c) for each column of vectors that this thread processes. c is the vector's first channel,
/// relative to the group's first channel.
template <int N, class Use>
__device__ void each_vector_column(const GroupLayout& layout, const GroupPlace& place, const Use& use) {
  for (int64_t c = place.column; c < layout.width; c += int64_t{layout.lanes} * N) use(c);
}

/// Calls use(i, load(i)) for the vector that starts at channel c of each of this thread's pixels. i is the
/// offset of the vector from the group's first element. Issues kAhead loads before the first use.
template <int kAhead, class Load, class Use>
__device__ void each_vector(const GroupLayout& layout, const GroupPlace& place, int64_t c, const Load& load,
                            const Use& use) {
  read_ahead<kAhead>(
      place.pixel, place.end, layout.down, [&](int64_t pixel) { return load(pixel * layout.channels + c); },
      [&](int64_t pixel, const auto& loaded) { use(pixel * layout.channels + c, loaded); });
}

/// For each group of the block, combines `count` values in a fixed order. The values of the groups are stored
/// one group after the other. All threads of the block must call this function; each gets the result for its
/// own group. Values must consist of floats.
template <class Values>
__device__ Values combine_stored(const GroupPlace& place, const Values* values, int64_t count) {
  __shared__ Values totals[kGroupThreads];
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  for (int g = warp; g < place.groups; g += kGroupThreads / kWarp) {
    Values total = {};
    read_ahead<4>(
        lane, count, kWarp, [&](int64_t i) { return values[g * count + i]; },
        [&](int64_t, const Values& value) { total.add(value); });
    for (int distance = kWarp / 2; distance > 0; distance /= 2) total.add(shuffled(total, distance));
    if (lane == 0) totals[g] = total;
  }
  __syncthreads();
  const Values mine = totals[place.slot];
  __syncthreads();
  return mine;
}

/// Combines the values of all threads of each group of the block, in a fixed order. All threads of the block
/// must call this function; each gets the result for its own group.
template <class Values>
__device__ Values combine_threads(const GroupLayout& layout, const GroupPlace& place, const Values& mine) {
  __shared__ Values values[kGroupThreads];
  const int members = layout.lanes * layout.down;
  if (place.any) values[place.slot * members + place.member] = mine;
  __syncthreads();
  return combine_stored(place, values, members);
}

}  // namespace dtrain::cuda
