// One direction of a convolution by cuDNN.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ops/cuda/handles.h"
#include "ops/specs.h"

namespace dtrain::cuda {

/// The GPU that plans are for: the one that a handle is of, or one that is only described. For that plans can
/// be found on a machine without GPU or driver, by cuDNN 9.8 or later, but not run.
class DnnDevice {
 public:
  DnnDevice(cudnnHandle_t handle) : handle_(handle) {}
  /// By JSON of the names and values that cuDNN gives to cudaDeviceProp's.
  static DnnDevice described(const std::string& properties);

  cudnnHandle_t handle() const { return handle_; }                 // null where described
  const DnnDescriptor& properties() const { return properties_; }  // null where not

 private:
  explicit DnnDevice(DnnDescriptor properties) : properties_(std::move(properties)) {}

  cudnnHandle_t handle_ = nullptr;
  DnnDescriptor properties_;
};

/// The types of a filter's gradient to ask cuDNN for, the preferred one first. By default float16 prefers
/// float32, as a sum over many images may exceed what float16 holds; bfloat16 holds it, and its own engines
/// are the faster ones. DTRAIN_FILTER_GRADIENT in the environment prefers the other: `compute` (the compute
/// type) or `float32`. Throws UserError where it says anything else.
std::vector<DType> filter_gradient_types(DType compute_type);

/// x is an image of the convolution's source, w its weights, y an image of its destination; which of them is
/// written follows from the direction. Images are NHWC, volumes NDHWC; weights are [filters, height, width,
/// channels], or [filters, depth, height, width, channels], of the compute type, and their gradient is of the
/// first of filter_gradient_types() that cuDNN has an engine for. Prepared once, by cuDNN's graph API: an
/// operation graph of one node, and the first plan that cuDNN's heuristics propose and that will do; engine
/// 0, the slowest, only where no other will.
class DnnConvolution {
 public:
  enum class Direction { forward, backward_data, backward_filter };

  /// Where so many bytes of workspace are at hand in any case. Nothing where cuDNN has no engine for it that
  /// keeps to `math`, or none that does with most_workspace().
  static std::optional<DnnConvolution> find(const DnnDevice& device, const GpuMath& math,
                                            const ConvolutionSpec& spec, Direction direction, size_t at_hand);
  static size_t most_workspace(const ConvolutionSpec& spec, DType type, size_t at_hand);

  size_t workspace_bytes() const { return workspace_bytes_; }
  /// The type of the elements of w, or of its gradient.
  DType weights_type() const { return weights_type_; }
  /// The engine that the plan is for, with its settings.
  const DnnDescriptor& engine() const { return engine_; }
  /// The engine's number in cuDNN. Number 0 takes everything, and is by far the slowest.
  int64_t engine_index() const;
  /// Enqueued on the stream of `handle`, which is of the device that the plan was found for.
  void run(cudnnHandle_t handle, const void* x, const void* w, const void* y, void* workspace) const;

 private:
  DnnConvolution(DnnDescriptor engine, DnnDescriptor plan, DType weights_type, size_t workspace_bytes)
      : engine_(std::move(engine)),
        plan_(std::move(plan)),
        weights_type_(weights_type),
        workspace_bytes_(workspace_bytes) {}
  static std::optional<DnnConvolution> find(const DnnDevice& device, const GpuMath& math,
                                            const ConvolutionSpec& spec, Direction direction,
                                            DType weights_type, size_t at_hand);

  DnnDescriptor engine_, plan_;  // the plan is of the engine's configuration
  DType weights_type_;
  size_t workspace_bytes_;
};

}  // namespace dtrain::cuda
