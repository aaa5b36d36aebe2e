#include <limits>
#include <string>
#include <utility>

#include "ops/cuda/convolution/depthwise_convolution.h"
#include "ops/cuda/vector.h"
#include "ops/math/activations.h"

namespace dtrain::cuda {
namespace {

/// The position of a thread's first pixel and first channel in a batch of images.
struct DepthwisePlace {
  int64_t image;
  int y, x, channel;
};

/// Returns the position of item `i`. The items are numbered in the order images, rows, blocks of `pixels`
/// pixels, vectors of N channels.
template <int N>
__device__ DepthwisePlace depthwise_place(int64_t i, int height, int blocks, int pixels, int vectors) {
  const Division pixel = divide(i, vectors), row = divide(pixel.quotient, blocks),
                 image = divide(row.quotient, height);
  return {image.quotient, static_cast<int>(image.rest), static_cast<int>(row.rest) * pixels,
          static_cast<int>(pixel.rest) * N};
}

__host__ __device__ constexpr int divided_up(int a, int b) {
  return (a + b - 1) / b;
}

/// Number of adjacent output pixels of a row that one thread computes. These pixels share loads of the source
/// and the kernel. With more pixels per thread, a multiprocessor would have enough registers for only one
/// block.
template <int K, int S>
inline constexpr int kPixels = K == 3 && S == 1 ? 4 : 2;

/// dst = act(src * kernel + bias) for a K x K kernel with stride S, without dilation, and with one filter per
/// channel. If `flipped` is true, the kernel is rotated by 180 degrees. With stride 1, this computes the
/// gradient of the source; `g` must then be turned_round(the geometry of the convolution).
template <class T, int N, int K, int S>
struct DepthwiseForward {
  DepthwiseGeometry g;
  const T *src, *kernel, *bias;
  T* dst;
  ActivationSpec activation;
  bool flipped;

  // Number of source pixels of a row that a thread reads.
  static constexpr int kSources = (kPixels<K, S> - 1) * S + K;

  int64_t items() const {
    return g.batch * g.out_height * divided_up(g.out_width, kPixels<K, S>) * (g.filters / N);
  }

  template <int One>
  __device__ void run(int64_t i) const {
    constexpr int P = kPixels<K, S>;
    const DepthwisePlace at =
        depthwise_place<N>(i, g.out_height, divided_up(g.out_width, P), P, g.filters / N);
    float sums[P][N];
    begin(at, sums);
    const int first_y = at.y * S - g.top, first_x = at.x * S - g.left;
#pragma unroll(K == 3 ? 3 : 1)
    for (int ky = 0; ky < K; ++ky) {
      const int y = first_y + ky;
      if (y < 0 || y >= g.height) continue;
      const T* row = src + ((at.image * g.height + y) * g.width) * g.channels + at.channel;
      Raw<N, T> sources[kSources] = {}, weights[K];
#pragma unroll
      for (int k = 0; k < K; ++k) weights[k] = load_raw<N>(weights_at(ky, k) + at.channel);
#pragma unroll
      for (int j = 0; j < kSources; ++j) {
        const int x = first_x + j;
        if (x >= 0 && x < g.width) sources[j] = load_raw<N>(row + int64_t{x} * g.channels);
      }
#pragma unroll
      for (int k = 0; k < K; ++k) {
#pragma unroll
        for (int p = 0; p < P; ++p) {
#pragma unroll
          for (int c = 0; c < N; ++c) sums[p][c] += sources[p * S + k][c] * weights[k][c];
        }
      }
    }
    finish(at, sums);
  }

 private:
  __device__ const T* weights_at(int ky, int kx) const {
    const int element = ky * K + kx;
    return kernel + int64_t{flipped ? K * K - 1 - element : element} * g.filters;
  }
  __device__ void begin(const DepthwisePlace& at, float (&sums)[kPixels<K, S>][N]) const {
    float biases[N] = {};
    if (bias) load(bias + at.channel, biases);
#pragma unroll
    for (int p = 0; p < kPixels<K, S>; ++p) {
#pragma unroll
      for (int c = 0; c < N; ++c) sums[p][c] = biases[c];
    }
  }
  __device__ void finish(const DepthwisePlace& at, float (&sums)[kPixels<K, S>][N]) const {
    T* row = dst + ((at.image * g.out_height + at.y) * g.out_width + at.x) * g.filters + at.channel;
    math::with_activation(activation, [&](auto act) {
#pragma unroll
      for (int p = 0; p < kPixels<K, S>; ++p) {
        if (at.x + p >= g.out_width) break;
#pragma unroll
        for (int c = 0; c < N; ++c) sums[p][c] = act.forward(sums[p][c]);
        store(row + int64_t{p} * g.filters, sums[p]);
      }
    });
  }
};

/// Computes the same as DepthwiseForward, for any kernel, strides and dilation. A thread computes N filters
/// of one pixel; N is 1 if a channel has several filters.
template <class T, int N>
struct AnyDepthwiseForward {
  DepthwiseGeometry g;
  const T *src, *kernel, *bias;
  T* dst;
  ActivationSpec activation;

  int64_t items() const { return g.batch * g.out_height * g.out_width * (g.filters / N); }

  template <int One>
  __device__ void run(int64_t i) const {
    const DepthwisePlace at = depthwise_place<N>(i, g.out_height, g.out_width, 1, g.filters / N);
    float sums[N] = {}, values[N], weights[N];
    if (bias) load(bias + at.channel, sums);
    const T* image =
        src + at.image * g.height * g.width * g.channels + (N == 1 ? at.channel / g.multiplier : at.channel);
    const T* element = kernel + at.channel;
    for (int ky = 0, y = at.y * g.stride_height - g.top; ky < g.kernel_height; ++ky, y += g.dilation_height) {
#pragma unroll 1
      for (int kx = 0, x = at.x * g.stride_width - g.left; kx < g.kernel_width;
           ++kx, x += g.dilation_width, element += g.filters) {
        if (y < 0 || y >= g.height || x < 0 || x >= g.width) continue;
        load(image + (int64_t{y} * g.width + x) * g.channels, values);
        load(element, weights);
#pragma unroll
        for (int c = 0; c < N; ++c) sums[c] += values[c] * weights[c];
      }
    }
    math::with_activation(activation, [&](auto act) {
#pragma unroll
      for (int c = 0; c < N; ++c) sums[c] = act.forward(sums[c]);
    });
    store(dst + i * N, sums);
  }
};

/// Returns the output row (or column) for which kernel element `k` reads source row (or column) `at`. Returns
/// -1 if there is no such output.
__device__ inline int output_reading(int at, int padding, int k, int dilation, int stride, int extent) {
  const int from = at + padding - k * dilation;
  if (from < 0 || from % stride != 0) return -1;
  return from / stride < extent ? from / stride : -1;
}

/// Computes diff_src. A thread computes N channels of one pixel; N is 1 if a channel has several filters. If
/// K and S are not 0, the kernel is K x K with stride S in both directions and without dilation. If they are
/// 0, the sizes are read from `g`.
template <class T, int N, int K, int S>
struct DepthwiseBackwardData {
  DepthwiseGeometry g;
  const T *diff_dst, *kernel;
  T* diff_src;

  int64_t items() const { return g.batch * g.height * g.width * (g.channels / N); }

  template <int One>
  __device__ void run(int64_t i) const {
    const DepthwisePlace at = depthwise_place<N>(i, g.height, g.width, 1, g.channels / N);
    const int height = K > 0 ? K : g.kernel_height, width = K > 0 ? K : g.kernel_width;
    float sums[N] = {};
#pragma unroll(K > 0 ? K : 1)
    for (int ky = 0; ky < height; ++ky) {
      const int y = output_reading(at.y, g.top, ky, K > 0 ? 1 : g.dilation_height,
                                   S > 0 ? S : g.stride_height, g.out_height);
      if (y < 0) continue;
#pragma unroll(K > 0 ? K : 1)
      for (int kx = 0; kx < width; ++kx) {
        const int x = output_reading(at.x, g.left, kx, K > 0 ? 1 : g.dilation_width,
                                     S > 0 ? S : g.stride_width, g.out_width);
        if (x >= 0) add(at, y, x, ky * width + kx, sums);
      }
    }
    store(diff_src + i * N, sums);
  }

 private:
  __device__ void add(const DepthwisePlace& at, int y, int x, int element, float (&sums)[N]) const {
    float diffs[N], weights[N];
    const int multiplier = N == 1 ? g.multiplier : 1;
    for (int m = 0; m < multiplier; ++m) {
      const int filter = at.channel * multiplier + m;
      load(diff_dst + ((at.image * g.out_height + y) * g.out_width + x) * g.filters + filter, diffs);
      load(kernel + int64_t{element} * g.filters + filter, weights);
#pragma unroll
      for (int c = 0; c < N; ++c) sums[c] += diffs[c] * weights[c];
    }
  }
};

int checked_extent(int64_t extent) {
  if (extent > std::numeric_limits<int>::max())
    throw Unsupported(
        "depthwise convolutions on a GPU only support extents below 2^31, but found an extent of " +
        std::to_string(extent));
  return static_cast<int>(extent);
}

/// For stride 1, the gradient of the source is itself a convolution, which reads the gradient of the
/// destination. Returns the geometry of this convolution.
DepthwiseGeometry turned_round(const DepthwiseGeometry& g) {
  DepthwiseGeometry turned = g;
  std::swap(turned.height, turned.out_height);
  std::swap(turned.width, turned.out_width);
  turned.top = g.kernel_height - 1 - g.top;
  turned.left = g.kernel_width - 1 - g.left;
  return turned;
}

/// Some common kernel sizes and strides have separate template instances. For these, calls use(K, S) with
/// compile-time constants and returns true. For all others, returns false.
template <class Use>
bool with_common(const DepthwiseGeometry& g, Use&& use) {
  const bool square = g.kernel_height == g.kernel_width && g.stride_height == g.stride_width;
  if (!square || g.dilation_height != 1 || g.dilation_width != 1) return false;
  const auto with_stride = [&](auto K) {
    if (g.stride_height == 1) return use(K, std::integral_constant<int, 1>{}), true;
    if (g.stride_height == 2) return use(K, std::integral_constant<int, 2>{}), true;
    return false;
  };
  switch (g.kernel_height) {
    case 3:
      return with_stride(std::integral_constant<int, 3>{});
    case 5:
      return with_stride(std::integral_constant<int, 5>{});
    case 7:
      return with_stride(std::integral_constant<int, 7>{});
    default:
      return false;
  }
}

template <class Body>
void run(const CudaContext& context, const Body& body) {
  for_each<1>(context, body.items(), false, body);
}

/// Returns true if a thread can compute several channels at a time.
template <class T, class... Arrays>
bool has_vectors(const DepthwiseGeometry& g, const Arrays*... arrays) {
  return g.multiplier == 1 && g.channels % kVector<T> == 0 && all_aligned(arrays...);
}

}  // namespace

DepthwiseGeometry::DepthwiseGeometry(const ConvolutionSpec& spec)
    : batch(spec.batch),
      height(checked_extent(spec.height)),
      width(checked_extent(spec.width)),
      channels(checked_extent(spec.channels)),
      out_height(checked_extent(spec.out_height())),
      out_width(checked_extent(spec.out_width())),
      filters(checked_extent(spec.filters)),
      multiplier(filters / channels),
      kernel_height(checked_extent(spec.kernel_height)),
      kernel_width(checked_extent(spec.kernel_width)),
      stride_height(checked_extent(spec.stride_height)),
      stride_width(checked_extent(spec.stride_width)),
      dilation_height(checked_extent(spec.dilation_height)),
      dilation_width(checked_extent(spec.dilation_width)),
      top(checked_extent(spec.padding.top)),
      left(checked_extent(spec.padding.left)) {}

DepthwiseConvolution::DepthwiseConvolution(CudaOps& ops, const ConvolutionSpec& spec)
    : ops_(ops), spec_(spec), geometry_(spec) {}

void DepthwiseConvolution::forward(const void* src, const void* kernel, const void* bias, void* dst, void*,
                                   void*) {
  with_type(ops_.compute_type(), [&](auto zero) {
    using T = decltype(zero);
    constexpr int N = kVector<T>;
    const auto* own_src = static_cast<const T*>(src);
    const auto* own_kernel = static_cast<const T*>(kernel);
    const auto* own_bias = static_cast<const T*>(spec_.bias ? bias : nullptr);
    auto* own_dst = static_cast<T*>(dst);
    const DepthwiseGeometry& g = geometry_;
    const CudaContext& context = ops_.context();
    if (!has_vectors<T>(g, own_src, own_kernel, own_bias, own_dst))
      return run(context,
                 AnyDepthwiseForward<T, 1>{g, own_src, own_kernel, own_bias, own_dst, spec_.activation});
    const bool common = with_common(g, [&](auto K, auto S) {
      run(context, DepthwiseForward<T, N, K.value, S.value>{g, own_src, own_kernel, own_bias, own_dst,
                                                            spec_.activation, false});
    });
    if (!common)
      run(context, AnyDepthwiseForward<T, N>{g, own_src, own_kernel, own_bias, own_dst, spec_.activation});
  });
}

void DepthwiseConvolution::backward_data(const void* diff_dst, const void* kernel, void* diff_src,
                                         const void*, void*) {
  with_type(ops_.compute_type(), [&](auto zero) {
    using T = decltype(zero);
    constexpr int N = kVector<T>;
    const auto* own_diff = static_cast<const T*>(diff_dst);
    const auto* own_kernel = static_cast<const T*>(kernel);
    auto* own_src = static_cast<T*>(diff_src);
    const DepthwiseGeometry& g = geometry_;
    const CudaContext& context = ops_.context();
    if (!has_vectors<T>(g, own_diff, own_kernel, own_src))
      return run(context, DepthwiseBackwardData<T, 1, 0, 0>{g, own_diff, own_kernel, own_src});
    const bool common = with_common(g, [&](auto K, auto S) {
      if constexpr (S.value == 1) {
        run(context, DepthwiseForward<T, N, K.value, 1>{
                         turned_round(g), own_diff, own_kernel, nullptr, own_src, {}, true});
      } else {
        run(context, DepthwiseBackwardData<T, N, K.value, S.value>{g, own_diff, own_kernel, own_src});
      }
    });
    if (!common) run(context, DepthwiseBackwardData<T, N, 0, 0>{g, own_diff, own_kernel, own_src});
  });
}

}  // namespace dtrain::cuda
