#include <algorithm>
#include <bit>
#include <type_traits>

#include "ops/cuda/convolution/depthwise_convolution.h"
#include "ops/cuda/reductions/reduce.h"
#include "ops/cuda/vector.h"

namespace dtrain::cuda {
namespace {

constexpr int kFilterThreads = 256;

/// The division of the work among blocks. Each block has rows of `across` threads (a power of 2, at most a
/// warp). The threads of a row cover N filters each, and the rows of threads take different pixels.
/// blockIdx.x is the index of a group of kTaps elements of a kernel row, so that blocks that read the same
/// pixels run at about the same time. blockIdx.y is the index of a filter tile, and blockIdx.z is the index
/// of a part of the pixels.
struct FilterTiling {
  int across;
  unsigned groups, tiles, parts;
};

/// Returns a tiling with enough parts to keep the device busy, but at least kFewPixels pixels per thread. A
/// thread sums at most kMostPixels pixels in float32.
FilterTiling filter_tiling(const DepthwiseGeometry& g, int taps, int N, int multiprocessors) {
  constexpr int64_t kFewPixels = 8, kMostPixels = 1024, kBlocks = 3, kMostParts = 65535;
  const int vectors = (g.filters + N - 1) / N;
  const int across = static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::min(vectors, kWarp))));
  const int64_t tiles = (vectors + across - 1) / across, groups = g.kernel_height * g.kernel_width / taps;
  const int64_t pixels = g.batch * g.out_height * g.out_width, down = kFilterThreads / across;
  const int64_t busy = (kBlocks * multiprocessors + tiles * groups - 1) / (tiles * groups);
  const auto parts_of = [&](int64_t each) { return (pixels + down * each - 1) / (down * each); };
  const int64_t parts = std::max(std::min(busy, parts_of(kFewPixels)), parts_of(kMostPixels));
  return {across, static_cast<unsigned>(groups), static_cast<unsigned>(tiles),
          static_cast<unsigned>(std::clamp<int64_t>(parts, 1, kMostParts))};
}

/// A pixel of the batch of output images, or a step from one pixel to another. Adding a step needs no
/// division.
struct OutputPixel {
  int64_t image;
  int y, x;

  __device__ static OutputPixel of(int64_t number, const DepthwiseGeometry& g) {
    const Division row = divide(number, g.out_width), image = divide(row.quotient, g.out_height);
    return {image.quotient, static_cast<int>(image.rest), static_cast<int>(row.rest)};
  }
  __device__ void add(const OutputPixel& step, const DepthwiseGeometry& g) {
    x += step.x;
    y += step.y;
    image += step.image;
    if (x >= g.out_width) {
      x -= g.out_width;
      ++y;
    }
    if (y >= g.out_height) {
      y -= g.out_height;
      ++image;
    }
  }
};

/// Each block writes its sums of src * diff_dst over its pixels to `partials` [parts, elements of the kernel,
/// filters]. A thread computes the sums of N filters for kTaps elements of one row of the kernel. N is 1 if a
/// channel has several filters.
template <class T, int N, int kTaps>
__global__ void __launch_bounds__(kFilterThreads, kTaps* N > 40 ? 1 : 2)
    filter_sums_kernel(const __grid_constant__ DepthwiseGeometry g, FilterTiling tiling, const T* src,
                       const T* diff_dst, float* partials) {
  __shared__ float of_warps[kFilterThreads / kWarp][kWarp * N];
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int across = tiling.across, down = kFilterThreads / across;
  const int filter = (static_cast<int>(blockIdx.y) * across + static_cast<int>(threadIdx.x) % across) * N;
  const int element = static_cast<int>(blockIdx.x) * kTaps, ky = element / g.kernel_width,
            kx = element % g.kernel_width;
  float sums[kTaps][N] = {};
  const int64_t pixels = g.batch * g.out_height * g.out_width, stride = int64_t{gridDim.z} * down;
  const int64_t begin = int64_t{blockIdx.z} * down + static_cast<int>(threadIdx.x) / across;
  OutputPixel at = OutputPixel::of(begin, g);
  const OutputPixel step = OutputPixel::of(stride, g);
  const T* channels = src + (N == 1 ? filter / g.multiplier : filter);
  const T* diff = diff_dst + begin * g.filters + filter;
  const T* end = filter < g.filters ? diff_dst + pixels * g.filters : diff;
  for (; diff < end; diff += stride * g.filters, at.add(step, g)) {
    const int y = at.y * g.stride_height + ky * g.dilation_height - g.top;
    if (y < 0 || y >= g.height) continue;
    const T* row = channels + (at.image * g.height + y) * g.width * g.channels;
    const int first = at.x * g.stride_width + kx * g.dilation_width - g.left;
    const Raw<N, T> diffs = load_raw<N>(diff);
    Raw<N, T> sources[kTaps] = {};
#pragma unroll
    for (int k = 0; k < kTaps; ++k) {
      const int x = first + k * g.dilation_width;
      if (x >= 0 && x < g.width) sources[k] = load_raw<N>(row + int64_t{x} * g.channels);
    }
#pragma unroll
    for (int k = 0; k < kTaps; ++k) {
#pragma unroll
      for (int c = 0; c < N; ++c) sums[k][c] += sources[k][c] * diffs[c];
    }
  }
  const int width = across * N, tile = static_cast<int>(blockIdx.y) * width;
#pragma unroll
  for (int k = 0; k < kTaps; ++k) {
    // Lanes whose distance is a multiple of `across` have the same filters, so their sums are added.
    for (int distance = kWarp / 2; distance >= across; distance /= 2) {
#pragma unroll
      for (int c = 0; c < N; ++c) sums[k][c] += __shfl_xor_sync(kAllLanes, sums[k][c], distance);
    }
    if (lane < across) {
#pragma unroll
      for (int c = 0; c < N; ++c) of_warps[warp][lane * N + c] = sums[k][c];
    }
    __syncthreads();
    float* partial =
        partials + (int64_t{blockIdx.z} * g.kernel_height * g.kernel_width + element + k) * g.filters;
    for (int c = static_cast<int>(threadIdx.x); c < width && tile + c < g.filters; c += kFilterThreads) {
      float sum = 0;
      for (int w = 0; w < kFilterThreads / kWarp; ++w) sum += of_warps[w][c];
      partial[tile + c] = sum;
    }
    __syncthreads();
  }
}

/// Adds the partial sums. A block computes kWarp weights, with kWarp threads per weight.
__global__ void __launch_bounds__(kWarp* kWarp)
    finish_filter_kernel(const float* partials, float* diff_kernel, int64_t weights, int parts) {
  __shared__ double of_parts[kWarp][kWarp];
  const int lane = static_cast<int>(threadIdx.x) % kWarp, share = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t weight = int64_t{blockIdx.x} * kWarp + lane;
  double sum = 0;
  if (weight < weights)
    for (int64_t part = share; part < parts; part += kWarp)
      sum += static_cast<double>(partials[part * weights + weight]);
  of_parts[share][lane] = sum;
  __syncthreads();
  if (share != 0 || weight >= weights) return;
  for (int s = 1; s < kWarp; ++s) sum += of_parts[s][lane];
  diff_kernel[weight] = static_cast<float>(sum);
}

/// Returns the number of elements of one row of the filter whose gradients one thread computes.
int taps_of(const DepthwiseGeometry& g) {
  return g.kernel_width == 3 || g.kernel_width == 5 || g.kernel_width == 7 ? g.kernel_width : 1;
}

/// Calls use(taps_of(g)) with a compile-time constant.
template <class Use>
void with_taps(const DepthwiseGeometry& g, Use&& use) {
  switch (taps_of(g)) {
    case 3:
      return use(std::integral_constant<int, 3>{});
    case 5:
      return use(std::integral_constant<int, 5>{});
    case 7:
      return use(std::integral_constant<int, 7>{});
    default:
      return use(std::integral_constant<int, 1>{});
  }
}

int64_t weights_of(const DepthwiseGeometry& g) {
  return int64_t{g.kernel_height} * g.kernel_width * g.filters;
}

}  // namespace

/// Returns a size that suffices both for accesses of single elements and for vector accesses, because the
/// alignment of the arrays is not known yet. With accesses of single elements, there are more tiles and
/// therefore fewer parts.
size_t DepthwiseConvolution::scratch_bytes() const {
  if (!spec_.training) return 0;
  unsigned parts = 0;
  for (const int N : {1, 16 / static_cast<int>(bytes_of(ops_.compute_type()))})
    parts = std::max(parts,
                     filter_tiling(geometry_, taps_of(geometry_), N, ops_.context().multiprocessors()).parts);
  return static_cast<size_t>(weights_of(geometry_)) * parts * sizeof(float);
}

void DepthwiseConvolution::backward_filter(const void* src, const void* diff_dst, float* diff_kernel,
                                           float* /*diff_bias*/, void* scratch) {
  const DepthwiseGeometry& g = geometry_;
  auto* partials = static_cast<float*>(scratch);
  const CudaContext& context = ops_.context();
  with_type(ops_.compute_type(), [&](auto zero) {
    using T = decltype(zero);
    const auto* own_src = static_cast<const T*>(src);
    const auto* own_diff = static_cast<const T*>(diff_dst);
    const bool vectors = g.multiplier == 1 && g.filters % kVector<T> == 0 && all_aligned(own_src, own_diff);
    with_width<T>(vectors, [&](auto width) {
      with_taps(g, [&](auto taps) {
        constexpr int N = decltype(width)::value, kTaps = decltype(taps)::value;
        const FilterTiling tiling = filter_tiling(g, kTaps, N, context.multiprocessors());
        launch(filter_sums_kernel<T, N, kTaps>, dim3(tiling.groups, tiling.tiles, tiling.parts),
               kFilterThreads, context.compute(), g, tiling, own_src, own_diff, partials);
        const int64_t weights = weights_of(g);
        launch(finish_filter_kernel, static_cast<unsigned>((weights + kWarp - 1) / kWarp), kWarp * kWarp,
               context.compute(), partials, diff_kernel, weights, static_cast<int>(tiling.parts));
      });
    });
  });
}

}  // namespace dtrain::cuda
