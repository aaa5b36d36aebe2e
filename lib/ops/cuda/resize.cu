// Image resizing: each thread computes adjacent channels of one pixel.
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/vector.h"
#include "ops/resize.h"

namespace dtrain::cuda {
namespace {

/// Position of an element in a batch of images.
struct Place {
  int64_t image, channel;
  int32_t y, x;
};
__device__ inline Place place_of(int64_t element, int64_t height, int64_t width, int64_t channels) {
  const Division pixel = divide(element, channels), row = divide(pixel.quotient, width),
                 image = divide(row.quotient, height);
  return {image.quotient, pixel.rest, static_cast<int32_t>(image.rest), static_cast<int32_t>(row.rest)};
}

/// Adds weight * src[j] to sums[j] for j in [0, N).
template <int N, class T>
__device__ inline void add_pixel(const T* src, float weight, float (&sums)[N]) {
  const Raw<N, T> values = load_raw<N>(src);
#pragma unroll
  for (int j = 0; j < N; ++j) sums[j] += weight * values[j];
}

// If N is greater than 1 in the following functors, the number of channels must be a multiple of N.

template <class T>
struct Interpolate {
  math::ResizedAxis down, across;
  int64_t channels;
  const T* src;
  T* dst;

  template <int N>
  __device__ void run(int64_t i) const {
    const Place at = place_of(i, down.out_extent, across.out_extent, channels);
    const math::Between rows = down.between(at.y), columns = across.between(at.x);
    const T* const image = src + at.image * down.extent * across.extent * channels + at.channel;
    const int64_t left = columns.first * channels, right = columns.second * channels;
    float sums[N] = {};
#pragma unroll 1
    for (int second = 0; second < 2; ++second) {
      const T* const row = image + int64_t{second ? rows.second : rows.first} * across.extent * channels;
      const float part = second ? rows.part : 1.0f - rows.part;
      add_pixel(row + left, part * (1.0f - columns.part), sums);
      add_pixel(row + right, part * columns.part, sums);
    }
    store(dst + i, sums);
  }
};

template <class T>
struct InterpolateBackward {
  math::ResizedAxis down, across;
  int64_t channels;
  const T* diff_dst;
  T* diff_src;

  template <int N>
  __device__ void run(int64_t i) const {
    const Place of = place_of(i, down.extent, across.extent, channels);
    const int64_t width = across.out_extent;
    const T* const image = diff_dst + of.image * down.out_extent * width * channels + of.channel;
    float sums[N] = {};
#pragma unroll 1
    for (int32_t y = down.begin(of.y); y < down.end(of.y); ++y) {
      const float of_row = down.weight(y, of.y);
#pragma unroll 1
      for (int32_t x = across.begin(of.x); x < across.end(of.x); ++x)
        add_pixel(image + (y * width + x) * channels, of_row * across.weight(x, of.x), sums);
    }
    store(diff_src + i, sums);
  }
};

}  // namespace

void CudaOps::resize(const ResizeSpec& spec, const void* src, void* dst) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    for_each<kVector<T>>(context_, spec.batch * spec.out_height * spec.out_width * spec.channels,
                         spec.channels % kVector<T> == 0 && all_aligned(src, dst),
                         Interpolate<T>{spec.down(), spec.across(), spec.channels, static_cast<const T*>(src),
                                        static_cast<T*>(dst)});
  });
}

void CudaOps::resize_backward(const ResizeSpec& spec, const void* diff_dst, void* diff_src) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    for_each<kVector<T>>(context_, spec.batch * spec.height * spec.width * spec.channels,
                         spec.channels % kVector<T> == 0 && all_aligned(diff_dst, diff_src),
                         InterpolateBackward<T>{spec.down(), spec.across(), spec.channels,
                                                static_cast<const T*>(diff_dst), static_cast<T*>(diff_src)});
  });
}

}  // namespace dtrain::cuda
