// Checks convolutions against their definition in double precision.
#pragma once

#include "ops/images.h"

namespace dtrain::test {

/// Calls `use` for each multiplication of the convolution, out += image * kernel, with indices into plain
/// arrays.
template <class Use>
void each_product(const ConvolutionSpec& spec, Use&& use) {
  const int64_t multiplier = spec.depthwise ? spec.filters / spec.channels : 0;
  for (int64_t n = 0; n < spec.batch; ++n) {
    for (int64_t y = 0; y < spec.out_height(); ++y) {
      for (int64_t x = 0; x < spec.out_width(); ++x) {
        for (int64_t ky = 0; ky < spec.kernel_height; ++ky) {
          for (int64_t kx = 0; kx < spec.kernel_width; ++kx) {
            const int64_t sy = y * spec.stride_height + ky * spec.dilation_height - spec.padding.top;
            const int64_t sx = x * spec.stride_width + kx * spec.dilation_width - spec.padding.left;
            if (sy < 0 || sy >= spec.height || sx < 0 || sx >= spec.width) continue;
            const int64_t src = ((n * spec.height + sy) * spec.width + sx) * spec.channels;
            const int64_t dst = ((n * spec.out_height() + y) * spec.out_width() + x) * spec.filters;
            const int64_t at = ky * spec.kernel_width + kx;
            for (int64_t f = 0; f < spec.filters; ++f) {
              if (spec.depthwise) {
                use(src + f / multiplier, at * spec.filters + f, dst + f);
                continue;
              }
              for (int64_t c = 0; c < spec.channels; ++c) {
                use(src + c, (at * spec.channels + c) * spec.filters + f, dst + f);
              }
            }
          }
        }
      }
    }
  }
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

/// Returns the tolerance for sums of products. cuDNN may choose algorithms that transform images and kernels,
/// and TF32 rounds the transformed values.
inline double error_of(const Device& device) {
  if (!device.is_gpu()) return 1e-5;
  return device.math.tf32 ? 2e-3 : 5e-5;
}

/// Checks a convolution prepared for `spec`.
inline void check_convolution(const Device& device, const ConvolutionSpec& spec, Convolution& convolution) {
  const Shape src_shape{spec.batch, spec.height, spec.width, spec.channels};
  const Shape dst_shape{spec.batch, spec.out_height(), spec.out_width(), spec.filters};
  const int64_t kernel_size =
      spec.kernel_height * spec.kernel_width * spec.filters * (spec.depthwise ? 1 : spec.channels);
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
  // Bias and activation may be separate passes, each with its own rounding.
  check_close(plain(device, dst, dst_shape, out), expected.dst, device.tolerance(error_of(device), 4));
  if (!spec.training) return;
  const TypedArray own_diff = laid_out(device, diff_dst, dst_shape, out), diff_src = device.typed(src.size());
  const auto diff_kernel = device.floats(kernel.size()), diff_bias = device.floats(bias.size());
  convolution.backward_filter(own_src.data(), own_diff.data(), diff_kernel.data(),
                              spec.bias ? diff_bias.data() : nullptr, scratch.data());
  check_close(diff_kernel.read(), expected.diff_kernel, device.tolerance(error_of(device)));
  if (spec.bias) {
    if (!convolution.gives_bias_gradient())
      device.ops().column_sum(diff_bias.data(), own_diff.data(), dst_shape.elements() / spec.filters,
                              spec.filters);
    check_close(diff_bias.read(), expected.diff_bias, 1e-5);
  }
  if (!spec.needs_diff_src) return;
  // Backward reads the kernel that forward saved, or converts it again.
  for (const void* given : {static_cast<const void*>(saved.data()), static_cast<const void*>(nullptr)}) {
    convolution.backward_data(own_diff.data(), own_kernel.data(), diff_src.data(), given, scratch.data());
    check_close(plain(device, diff_src, src_shape, in), expected.diff_src,
                device.tolerance(error_of(device)));
  }
}

/// Returns the spec of a convolution of three images that are slightly wider than high.
inline ConvolutionSpec spec_of(int64_t size, int64_t channels, int64_t filters, int64_t kernel,
                               int64_t stride, int64_t dilation, Padding2 padding) {
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

}  // namespace dtrain::test
