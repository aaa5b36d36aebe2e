#include "ops/cuda/convolution/convolution_kernels.h"
#include "ops/cuda/reductions/reduce.h"
#include "ops/cuda/vector.h"
#include "ops/math/activations.h"

namespace dtrain::cuda {
namespace {

/// The position of an element in a batch of volumes.
struct Place {
  int64_t n, z, y, x, c;
};
__device__ Place place_of(int64_t i, int64_t depth, int64_t height, int64_t width, int64_t channels) {
  const Division pixel = divide(i, channels), row = divide(pixel.quotient, width),
                 plane = divide(row.quotient, height), image = divide(plane.quotient, depth);
  return {image.quotient, image.rest, plane.rest, row.rest, pixel.rest};
}

/// Returns the output position, along one axis, for which kernel element `k` reads source position `at`.
/// Returns -1 if there is no such output.
__device__ int64_t met_by(int64_t at, int64_t padding, int64_t k, int64_t dilation, int64_t stride,
                          int64_t extent) {
  const int64_t from = at + padding - k * dilation;
  if (from < 0 || from % stride != 0) return -1;
  return from / stride < extent ? from / stride : -1;
}

/// Extents of a convolution, passed to kernels by value.
struct Geometry {
  int64_t batch, depth, height, width, channels, out_depth, out_height, out_width, filters;
  // Numbers of channels and of filters in each group.
  int64_t group_channels, group_filters;
  int64_t kernel_depth, kernel_height, kernel_width, stride_depth, stride_height, stride_width;
  int64_t dilation_depth, dilation_height, dilation_width, front, top, left;

  explicit Geometry(const ConvolutionSpec& s)
      : batch(s.batch),
        depth(s.depth),
        height(s.height),
        width(s.width),
        channels(s.channels),
        out_depth(s.out_depth()),
        out_height(s.out_height()),
        out_width(s.out_width()),
        filters(s.filters),
        group_channels(s.channels / s.groups),
        group_filters(s.filters / s.groups),
        kernel_depth(s.kernel_depth),
        kernel_height(s.kernel_height),
        kernel_width(s.kernel_width),
        stride_depth(s.stride_depth),
        stride_height(s.stride_height),
        stride_width(s.stride_width),
        dilation_depth(s.dilation_depth),
        dilation_height(s.dilation_height),
        dilation_width(s.dilation_width),
        front(s.padding.front),
        top(s.padding.top),
        left(s.padding.left) {}

  __host__ __device__ int64_t kernel_pixels() const { return kernel_depth * kernel_height * kernel_width; }
  /// Returns the position of element k of the kernel.
  __device__ Place kernel_place(int64_t k) const {
    return place_of(k, kernel_depth, kernel_height, kernel_width, 1);
  }
  /// Returns the index of the first channel of the source pixel that kernel element `k` reads for output
  /// pixel `at`; -1 if the pixel is in the padding.
  __device__ int64_t src_at(const Place& at, const Place& k) const {
    const int64_t z = at.z * stride_depth + k.z * dilation_depth - front;
    const int64_t y = at.y * stride_height + k.y * dilation_height - top;
    const int64_t x = at.x * stride_width + k.x * dilation_width - left;
    if (z < 0 || z >= depth || y < 0 || y >= height || x < 0 || x >= width) return -1;
    return (((at.n * depth + z) * height + y) * width + x) * channels;
  }
  /// Returns the index of the first filter of the output pixel for which kernel element `k` reads source
  /// pixel `at`. Returns -1 if there is no such output pixel.
  __device__ int64_t dst_at(const Place& at, const Place& k) const {
    const int64_t z = met_by(at.z, front, k.z, dilation_depth, stride_depth, out_depth);
    const int64_t y = met_by(at.y, top, k.y, dilation_height, stride_height, out_height);
    const int64_t x = met_by(at.x, left, k.x, dilation_width, stride_width, out_width);
    if (z < 0 || y < 0 || x < 0) return -1;
    return (((at.n * out_depth + z) * out_height + y) * out_width + x) * filters;
  }
  /// Returns the first channel that a filter reads.
  __device__ int64_t first_channel(int64_t filter) const { return filter / group_filters * group_channels; }
  int64_t src_elements() const { return batch * depth * height * width * channels; }
  int64_t dst_elements() const { return batch * out_depth * out_height * out_width * filters; }
  __host__ __device__ int64_t weights() const { return kernel_pixels() * group_channels * filters; }
};

template <class T>
struct Forward {
  Geometry g;
  const T *src, *kernel, *bias;
  T* dst;
  ActivationSpec activation;

  template <int N>
  __device__ void run(int64_t i) const {
    static_assert(N == 1);
    const Place at = place_of(i, g.out_depth, g.out_height, g.out_width, g.filters);
    const int64_t first = g.first_channel(at.c);
    float sum = bias ? to_float(bias[at.c]) : 0.0f;
    for (int64_t k = 0; k < g.kernel_pixels(); ++k) {
      const int64_t from = g.src_at(at, g.kernel_place(k));
      if (from < 0) continue;
      const T* weights = kernel + k * g.group_channels * g.filters + at.c;
      for (int64_t c = 0; c < g.group_channels; ++c)
        sum += to_float(src[from + first + c]) * to_float(weights[c * g.filters]);
    }
    math::with_activation(activation, [&](auto act) { dst[i] = from_float<T>(act.forward(sum)); });
  }
};

template <class T>
struct BackwardData {
  Geometry g;
  const T *diff_dst, *kernel;
  T* diff_src;

  template <int N>
  __device__ void run(int64_t i) const {
    static_assert(N == 1);
    const Place at = place_of(i, g.depth, g.height, g.width, g.channels);
    const Division group = divide(at.c, g.group_channels);
    const int64_t first = group.quotient * g.group_filters;  // the first filter that reads this channel
    float sum = 0;
    for (int64_t k = 0; k < g.kernel_pixels(); ++k) {
      const int64_t from = g.dst_at(at, g.kernel_place(k));
      if (from < 0) continue;
      const T* diffs = diff_dst + from + first;
      const T* weights = kernel + (k * g.group_channels + group.rest) * g.filters + first;
      for (int64_t f = 0; f < g.group_filters; ++f) sum += to_float(diffs[f]) * to_float(weights[f]);
    }
    diff_src[i] = from_float<T>(sum);
  }
};

/// Each block computes the gradient of one weight at a time. Its threads share the output pixels.
template <class T>
__global__ void __launch_bounds__(kEachThreads, 4)
    backward_filter_kernel(Geometry g, const T* src, const T* diff_dst, float* diff_kernel) {
  const int64_t pixels = g.batch * g.out_depth * g.out_height * g.out_width, weights = g.weights();
  for (int64_t w = blockIdx.x; w < weights; w += gridDim.x) {
    const int64_t filter = w % g.filters, row = w / g.filters;
    const int64_t channel = g.first_channel(filter) + row % g.group_channels;
    const Place k = g.kernel_place(row / g.group_channels);
    float sum = 0;
    for (int64_t p = threadIdx.x; p < pixels; p += blockDim.x) {
      const int64_t from = g.src_at(place_of(p, g.out_depth, g.out_height, g.out_width, 1), k);
      if (from >= 0) sum += to_float(src[from + channel]) * to_float(diff_dst[p * g.filters + filter]);
    }
    sum = block_reduce(sum, Add{});
    if (threadIdx.x == 0) diff_kernel[w] = sum;
  }
}

}  // namespace

void DirectConvolution::forward(const void* src, const void* kernel, const void* bias, void* dst, void*,
                                void*) {
  with_type(ops_.compute_type(), [&](auto zero) {
    using T = decltype(zero);
    const Forward<T> body{Geometry(spec_),
                          static_cast<const T*>(src),
                          static_cast<const T*>(kernel),
                          static_cast<const T*>(spec_.bias ? bias : nullptr),
                          static_cast<T*>(dst),
                          spec_.activation};
    for_each<1>(ops_.context(), body.g.dst_elements(), false, body);
  });
}

void DirectConvolution::backward_data(const void* diff_dst, const void* kernel, void* diff_src, const void*,
                                      void*) {
  with_type(ops_.compute_type(), [&](auto zero) {
    using T = decltype(zero);
    const BackwardData<T> body{Geometry(spec_), static_cast<const T*>(diff_dst),
                               static_cast<const T*>(kernel), static_cast<T*>(diff_src)};
    for_each<1>(ops_.context(), body.g.src_elements(), false, body);
  });
}

void DirectConvolution::backward_filter(const void* src, const void* diff_dst, float* diff_kernel,
                                        float* /*diff_bias*/, void*) {
  const Geometry g(spec_);
  with_type(ops_.compute_type(), [&](auto zero) {
    using T = decltype(zero);
    launch(backward_filter_kernel<T>, blocks_for(g.weights(), 1, ops_.context().multiprocessors()),
           kEachThreads, ops_.context().compute(), g, static_cast<const T*>(src),
           static_cast<const T*>(diff_dst), diff_kernel);
  });
}

}  // namespace dtrain::cuda
