// Checks convolutions against their definition in double precision.
#pragma once

#include "ops/images.h"

namespace dtrain::test {

/// Computes the source index along an axis for element `k` of the kernel and element `at` of the destination.
struct MetAt {
  int64_t stride, dilation, before, extent;
  int64_t operator()(int64_t at, int64_t k) const { return at * stride + k * dilation - before; }
  bool has(int64_t place) const { return place >= 0 && place < extent; }
};

/// Calls use(src, dst, k) for each pair of pixels that element k of the kernel connects. src and dst are the
/// indices of the pixels' first elements.
template <class Use>
void each_pair_of_pixels(const ConvolutionSpec& s, Use&& use) {
  const MetAt down{s.stride_height, s.dilation_height, s.padding.top, s.height},
      across{s.stride_width, s.dilation_width, s.padding.left, s.width},
      inwards{s.stride_depth, s.dilation_depth, s.padding.front, s.depth};
  for (int64_t dst = 0; dst < s.batch * s.dst_pixels(); ++dst) {
    const int64_t x = dst % s.out_width(), y = dst / s.out_width() % s.out_height(),
                  z = dst / s.out_width() / s.out_height() % s.out_depth(), n = dst / s.dst_pixels();
    for (int64_t k = 0; k < s.kernel_pixels(); ++k) {
      const int64_t sx = across(x, k % s.kernel_width), sy = down(y, k / s.kernel_width % s.kernel_height),
                    sz = inwards(z, k / s.kernel_width / s.kernel_height);
      if (!across.has(sx) || !down.has(sy) || !inwards.has(sz)) continue;
      use((((n * s.depth + sz) * s.height + sy) * s.width + sx) * s.channels, dst * s.filters, k);
    }
  }
}

/// Calls `use` for each multiplication of the convolution, out += image * kernel, with indices into plain
/// arrays.
template <class Use>
void each_product(const ConvolutionSpec& spec, Use&& use) {
  const int64_t channels = spec.filter_channels(), group_filters = spec.filters / spec.group_count();
  each_pair_of_pixels(spec, [&](int64_t src, int64_t dst, int64_t k) {
    for (int64_t f = 0; f < spec.filters; ++f) {
      const int64_t first = f / group_filters * channels;
      for (int64_t c = 0; c < channels; ++c)
        use(src + first + c, (k * channels + c) * spec.filters + f, dst + f);
    }
  });
}

struct ConvolutionReference {
  Doubles dst, diff_src, diff_kernel, diff_bias;
};

inline ConvolutionReference reference(const ConvolutionSpec& spec, const Floats& src, const Floats& kernel,
                                      const Floats& bias, const Floats& diff_dst) {
  ConvolutionReference r{Doubles(diff_dst.size()), Doubles(src.size()), Doubles(kernel.size()),
                         Doubles(bias.size())};
  each_product(spec, [&](int64_t s, int64_t k, int64_t d) {
    const auto i = static_cast<size_t>(s), j = static_cast<size_t>(k), o = static_cast<size_t>(d);
    r.dst[o] += static_cast<double>(src[i]) * static_cast<double>(kernel[j]);
    r.diff_src[i] += static_cast<double>(diff_dst[o]) * static_cast<double>(kernel[j]);
    r.diff_kernel[j] += static_cast<double>(diff_dst[o]) * static_cast<double>(src[i]);
  });
  for (size_t o = 0; o < r.dst.size(); ++o) {
    const size_t f = o % bias.size();
    if (spec.bias) r.dst[o] += static_cast<double>(bias[f]);
    r.diff_bias[f] += static_cast<double>(diff_dst[o]);
    const double x = r.dst[o], alpha = static_cast<double>(spec.activation.alpha);
    switch (spec.activation.kind) {
      case Activation::relu:
        r.dst[o] = std::max(x, 0.0);
        break;
      case Activation::leaky_relu:
        r.dst[o] = x < 0 ? alpha * x : x;
        break;
      case Activation::tanh:
        r.dst[o] = std::tanh(x);
        break;
      case Activation::sigmoid:
        r.dst[o] = 1 / (1 + std::exp(-x));
        break;
      case Activation::elu:
        r.dst[o] = x < 0 ? alpha * std::expm1(x) : x;
        break;
      case Activation::clipped_relu:
        r.dst[o] = std::clamp(x, 0.0, static_cast<double>(spec.activation.maximum));
        break;
      case Activation::softsign:
        r.dst[o] = x / (1 + std::abs(x));
        break;
      default:
        break;
    }
  }
  return r;
}

/// Returns the tolerance for sums of this many products. On CPUs, the tolerance is larger for long sums,
/// because oneDNN's AVX-512 kernels have an error of 1.1e-5 in a sum of 864 products. On GPUs, cuDNN may
/// choose algorithms that transform images and kernels, and TF32 rounds the transformed values.
inline double error_of(const Device& device, int64_t products = 0) {
  if (!device.is_gpu()) return products > 800 ? 2e-5 : 1e-5;
  return device.math.tf32 ? 2e-3 : 5e-5;
}

/// Checks a convolution prepared for `spec`.
inline void check_convolution(const Device& device, const ConvolutionSpec& spec, Convolution& convolution) {
  const Shape src_shape{spec.batch, spec.depth * spec.height, spec.width, spec.channels};
  const Shape dst_shape{spec.batch, spec.out_depth() * spec.out_height(), spec.out_width(), spec.filters};
  const int64_t kernel_size = spec.kernel_pixels() * spec.filters * spec.filter_channels();
  const Floats src = device.random(src_shape.elements(), 1), kernel = device.random(kernel_size, 2);
  const Floats bias = device.random(spec.filters, 3), diff_dst = device.random(dst_shape.elements(), 4);
  const ConvolutionReference expected = reference(spec, src, kernel, bias, diff_dst);

  const Layout in = convolution.src_layout(), out = convolution.dst_layout();
  CAPTURE(static_cast<int>(in));
  CAPTURE(static_cast<int>(out));
  const auto scratch = device.memory(convolution.scratch_bytes()),
             saved = device.memory(convolution.saved_bytes());
  const TypedArray own_src = laid_out(device, src, src_shape, in), own_kernel = device.typed(kernel),
                   own_bias = device.typed(bias), dst = device.typed(diff_dst.size());
  convolution.forward(own_src.data(), own_kernel.data(), spec.bias ? own_bias.data() : nullptr, dst.data(),
                      saved.data(), scratch.data());
  // The tolerance allows for bias and activation to be computed in separate passes, each of which rounds its
  // results.
  check_close(plain(device, dst, dst_shape, out), expected.dst, device.tolerance(error_of(device), 4));
  if (!spec.training) return;
  const TypedArray own_diff = laid_out(device, diff_dst, dst_shape, out), diff_src = device.typed(src.size());
  const auto diff_kernel = device.floats(kernel.size()), diff_bias = device.floats(bias.size());
  convolution.backward_filter(own_src.data(), own_diff.data(), diff_kernel.data(),
                              spec.bias ? diff_bias.data() : nullptr, scratch.data());
  check_close(diff_kernel.read(), expected.diff_kernel, device.tolerance(error_of(device)));
  if (spec.bias) {
    if (!convolution.computes_bias_gradient())
      device.ops().column_sum(diff_bias.data(), own_diff.data(), dst_shape.elements() / spec.filters,
                              spec.filters);
    check_close(diff_bias.read(), expected.diff_bias, 1e-5);
  }
  if (!spec.needs_diff_src) return;
  // The backward pass either reads the kernel that the forward pass has saved, or, if the argument is null,
  // converts the kernel again.
  for (const void* given : {static_cast<const void*>(saved.data()), static_cast<const void*>(nullptr)}) {
    convolution.backward_data(own_diff.data(), own_kernel.data(), diff_src.data(), given, scratch.data());
    check_close(plain(device, diff_src, src_shape, in), expected.diff_src,
                device.tolerance(error_of(device, spec.kernel_pixels() * spec.filters)));
  }
}

/// Returns the spec of a convolution of three images that are slightly wider than high.
inline ConvolutionSpec spec_of(int64_t size, int64_t channels, int64_t filters, int64_t kernel,
                               int64_t stride, int64_t dilation, Padding3 padding) {
  ConvolutionSpec spec;
  spec.batch = 3;
  spec.height = size;
  spec.width = size + 2;
  spec.channels = channels;
  spec.filters = filters;
  spec.kernel_height = spec.kernel_width = kernel;
  spec.stride_height = spec.stride_width = stride;
  spec.dilation_height = spec.dilation_width = dilation;
  spec.padding = padding;
  return spec;
}

/// Returns the spec of a convolution of three volumes of this depth.
inline ConvolutionSpec volume_spec_of(int64_t depth, int64_t size, int64_t channels, int64_t filters,
                                      int64_t kernel, int64_t stride, int64_t dilation, Padding3 padding) {
  ConvolutionSpec spec = spec_of(size, channels, filters, kernel, stride, dilation, padding);
  spec.depth = depth;
  spec.kernel_depth = kernel;
  spec.stride_depth = stride;
  spec.dilation_depth = dilation;
  return spec;
}

}  // namespace dtrain::test
