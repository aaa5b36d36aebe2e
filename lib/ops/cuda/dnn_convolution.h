// One direction of a convolution by cuDNN.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "device/cuda/context.h"
#include "ops/cuda/handles.h"
#include "ops/specs.h"

namespace dtrain::cuda {

/// x is an image of the convolution's source, w its weights, y an image of its destination; which of them is
/// written follows from the direction. Images are NHWC; weights are [filters, height, width, channels] of
/// the compute type, [filters, height, width, 1] where depthwise. Prepared once, by cuDNN's graph API: an
/// operation graph of one node, and the first plan for it that cuDNN's heuristics propose and that will do.
class DnnConvolution {
 public:
  enum class Direction { forward, backward_data, backward_filter };

  /// Nothing where cuDNN has no engine for it that keeps to `math`, or none with so little workspace.
  static std::optional<DnnConvolution> find(CudaContext& context, const GpuMath& math,
                                            const ConvolutionSpec& spec, Direction direction,
                                            size_t workspace_limit);

  size_t workspace_bytes() const { return workspace_bytes_; }
  void run(const void* x, const void* w, const void* y, void* workspace) const;

 private:
  DnnConvolution(CudaContext& context, DnnDescriptor engine, DnnDescriptor plan, size_t workspace_bytes)
      : context_(&context),
        engine_(std::move(engine)),
        plan_(std::move(plan)),
        workspace_bytes_(workspace_bytes) {}

  CudaContext* context_;
  DnnDescriptor engine_, plan_;  // the plan is of the engine's configuration
  size_t workspace_bytes_;
};

}  // namespace dtrain::cuda
