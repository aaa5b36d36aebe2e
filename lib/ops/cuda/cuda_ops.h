// Implementation of Ops on a GPU with cuBLASLt, cuDNN and dtrain's own kernels.
#pragma once

#include <memory>

#include "device/cuda/context.h"
#include "ops/ops.h"

namespace dtrain::cuda {

class AttentionPlans;

/// The operations of a GPU. They may only be called by the thread of their context. An operation only
/// enqueues work on the context's compute stream. It does not wait or allocate memory, so it can be captured
/// in a CUDA graph.
///
/// Results are bitwise identical in every run. If GpuMath::deterministic is false, this does not hold for
/// cuBLASLt, cuDNN and count().
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

#define DTRAIN_OP(result, name, arguments) result name arguments override;
#include "ops/ops.inc"

 private:
  cudaStream_t stream() const {
    return context_.compute();
  }
  /// Returns a buffer of kPartials doubles in which the blocks of a kernel store their partial sums. The next
  /// kernel adds these sums in order.
  double* partials() const {
    return static_cast<double*>(partials_.data());
  }
  static constexpr int kPartials = 8192;
  /// Returns kArrivals counters for the kernels of the compute stream, which use them to count the blocks
  /// that have finished. The counters are zero at the start and at the end of every kernel.
  unsigned* arrived() const {
    return static_cast<unsigned*>(arrived_.data());
  }
  static constexpr int kArrivals = 1024;

  CudaContext& context_;
  GpuMath math_;
  Buffer partials_, arrived_;
  std::shared_ptr<AttentionPlans> attention_plans_;  // created when attention is prepared
};

}  // namespace dtrain::cuda
