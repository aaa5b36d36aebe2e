// Depthwise convolutions by dtrain's own kernels. These operations are limited by the memory bandwidth, and
// cuDNN's engines reach only a small part of this bandwidth.
#pragma once

#include "ops/cuda/cuda_ops.h"

namespace dtrain::cuda {

/// Extents of a depthwise convolution, passed to kernels by value. Images are NHWC. The kernel has Keras's
/// layout, [height, width, filters]; the filters of a channel are contiguous.
struct DepthwiseGeometry {
  int64_t batch;
  // `multiplier` is the number of filters per channel.
  int height, width, channels, out_height, out_width, filters, multiplier;
  int kernel_height, kernel_width, stride_height, stride_width, dilation_height, dilation_width;
  int top, left;

  /// Throws Unsupported if an extent is too large.
  explicit DepthwiseGeometry(const ConvolutionSpec& spec);
};

/// A prepared depthwise convolution. Sums are computed in float32 in a fixed order. The forward call includes
/// bias and activation.
class DepthwiseConvolution final : public Convolution {
 public:
  DepthwiseConvolution(CudaOps& ops, const ConvolutionSpec& spec);

  Layout src_layout() const override { return Layout::plain; }
  Layout dst_layout() const override { return Layout::plain; }
  size_t scratch_bytes() const override;
  size_t saved_bytes() const override { return 0; }
  void forward(const void* src, const void* kernel, const void* bias, void* dst, void* saved,
               void* scratch) override;
  void backward_data(const void* diff_dst, const void* kernel, void* diff_src, const void* saved,
                     void* scratch) override;
  bool computes_bias_gradient() const override { return false; }
  void backward_filter(const void* src, const void* diff_dst, float* diff_kernel, float* diff_bias,
                       void* scratch) override;

 private:
  CudaOps& ops_;
  ConvolutionSpec spec_;
  DepthwiseGeometry geometry_;
};

}  // namespace dtrain::cuda
