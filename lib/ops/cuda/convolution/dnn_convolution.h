// One direction of a convolution (forward, data gradient or filter gradient) by cuDNN.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ops/cuda/handles.h"
#include "ops/specs.h"

namespace dtrain::cuda {

/// The GPU for which plans are found: the GPU of a handle, or a described one. For a described GPU, plans can
/// be found without GPU and driver (with cuDNN 9.8 or later) but not run.
class DnnDevice {
 public:
  DnnDevice(cudnnHandle_t handle) : handle_(handle) {}
  /// `properties`: JSON with cuDNN's names for the values of cudaDeviceProp.
  static DnnDevice described(const std::string& properties);

  cudnnHandle_t handle() const { return handle_; }                 // null if described
  const DnnDescriptor& properties() const { return properties_; }  // null unless described

 private:
  explicit DnnDevice(DnnDescriptor properties) : properties_(std::move(properties)) {}

  cudnnHandle_t handle_ = nullptr;
  DnnDescriptor properties_;
};

/// Returns the types in which to request filter gradients from cuDNN, the preferred type first. By default,
/// float16 prefers float32, because a sum over many images may exceed float16's range; bfloat16 prefers
/// bfloat16, whose range suffices and whose engines are faster. The environment variable
/// DTRAIN_FILTER_GRADIENT overrides this: `compute` (the compute type) or `float32`. Throws UserError if it
/// has any other value.
std::vector<DType> filter_gradient_types(DType compute_type);

/// A prepared cuDNN call. x is the convolution's source, w its weights, y its destination; the direction
/// determines which of them is written. Images are NHWC, volumes NDHWC. Weights are [filters, height, width,
/// channels], or [filters, depth, height, width, channels], in the compute type; their gradient has the first
/// of filter_gradient_types() that cuDNN has an engine for. Uses cuDNN's graph API: an operation graph of one
/// node, and the first suitable plan that cuDNN's heuristics propose. Engine 0, the slowest, is used only if
/// no other engine is suitable.
class DnnConvolution {
 public:
  enum class Direction { forward, backward_data, backward_filter };

  /// `at_hand`: bytes of workspace that are available without scratch memory. Returns nullopt if cuDNN has no
  /// engine that satisfies `math` and needs at most most_workspace() bytes.
  static std::optional<DnnConvolution> find(const DnnDevice& device, const GpuMath& math,
                                            const ConvolutionSpec& spec, Direction direction, size_t at_hand);
  static size_t most_workspace(const ConvolutionSpec& spec, DType type, size_t at_hand);

  size_t workspace_bytes() const { return workspace_bytes_; }
  /// Returns the element type of w or of its gradient.
  DType weights_type() const { return weights_type_; }
  /// Returns the plan's engine configuration.
  const DnnDescriptor& engine() const { return engine_; }
  /// Returns cuDNN's number of the engine. Engine 0 supports everything and is by far the slowest.
  int64_t engine_index() const;
  /// Enqueues the call on the stream of `handle`, whose device must be the one that the plan was found for.
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

  DnnDescriptor engine_, plan_;  // engine configuration; its plan
  DType weights_type_;
  size_t workspace_bytes_;
};

}  // namespace dtrain::cuda
