// The op vocabulary on a GPU: cuBLASLt, cuDNN, and kernels of our own.
#pragma once

#include "device/cuda/context.h"
#include "ops/ops.h"

namespace dtrain::cuda {

/// Belongs to its context's thread. Everything is enqueued on the context's compute stream, waits for nothing
/// and allocates nothing, so that it can be captured. Results are the same bits run after run; where
/// GpuMath::deterministic is false, all but those of cuBLASLt, of cuDNN and of count().
class CudaOps final : public Ops {
 public:
  CudaOps(CudaContext& context, const GpuMath& math)
      : context_(context),
        math_(math),
        partials_(context.allocate(kPartials * sizeof(double))),
        arrived_(context.allocate(kArrivals * sizeof(unsigned))) {}

  CudaContext& context() override { return context_; }
  DType compute_type() const override { return math_.type; }
  const GpuMath& math() const { return math_; }
  bool adds_in_normalization() const override { return true; }

#include "ops/overrides.inc"

 private:
  cudaStream_t stream() const {
    return context_.compute();
  }
  /// Where the blocks of a kernel leave their sums, [kPartials] at most, for the next kernel to add in order.
  double* partials() const {
    return static_cast<double*>(partials_.data());
  }
  static constexpr int kPartials = 8192;
  /// For kernels of compute() that count their blocks as they end: kArrivals zeros, which each such
  /// kernel sets to zero again.
  unsigned* arrived() const {
    return static_cast<unsigned*>(arrived_.data());
  }
  static constexpr int kArrivals = 1024;

  CudaContext& context_;
  GpuMath math_;
  Buffer partials_, arrived_;
};

}  // namespace dtrain::cuda
