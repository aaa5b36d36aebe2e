// Depthwise convolutions by kernels of our own: cuDNN's engines for them stay far below the memory's rate,
// which is all that there is to them.
#pragma once

#include "ops/cuda/cuda_ops.h"

namespace dtrain::cuda {

/// Extents, as a kernel's argument. Images are NHWC; the kernel is Keras's, [height, width, filters] with the
/// filters of a channel side by side.
struct DepthwiseGeometry {
  int64_t batch;
  int height, width, channels, out_height, out_width, filters, multiplier;  // filters of a channel
  int kernel_height, kernel_width, stride_height, stride_width, dilation_height, dilation_width;
  int top, left;

  /// Throws Unsupported where an extent does not fit.
  explicit DepthwiseGeometry(const ConvolutionSpec& spec);
};

/// Sums are of float32 and in an order that is always the same; bias and activation are part of forward.
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
  bool gives_bias_gradient() const override { return false; }
  void backward_filter(const void* src, const void* diff_dst, float* diff_kernel, float* diff_bias,
                       void* scratch) override;

 private:
  CudaOps& ops_;
  ConvolutionSpec spec_;
  DepthwiseGeometry geometry_;
};

}  // namespace dtrain::cuda
