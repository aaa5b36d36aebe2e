// dtrain's own kernels for convolutions: the conversion of convolution kernels to cuDNN's order, and
// convolutions for which cuDNN has no engine.
#pragma once

#include "ops/cuda/cuda_ops.h"

namespace dtrain::cuda {

/// dst[c, r] = src[r, c], both in the compute type. Converts Keras's kernels to cuDNN's order, filters first.
void transpose(CudaOps& ops, const void* src, void* dst, int64_t rows, int64_t columns);
/// Transposes an array of any type to float32. Converts a kernel's gradient back to Keras's order.
void transpose_to_float(CudaOps& ops, DType type, const void* src, float* dst, int64_t rows, int64_t columns);

/// A convolution that is computed directly from its definition by dtrain's own kernels. It is slow, so it is
/// used only if cuDNN has no engine.
class DirectConvolution final : public Convolution {
 public:
  DirectConvolution(CudaOps& ops, const ConvolutionSpec& spec) : ops_(ops), spec_(spec) {}

  Layout src_layout() const override { return Layout::plain; }
  Layout dst_layout() const override { return Layout::plain; }
  size_t scratch_bytes() const override { return 0; }
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
};

}  // namespace dtrain::cuda
