// One direction of a convolution (forward, data gradient or filter gradient) by cuDNN.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "ops/cuda/dnn_graph.h"
#include "ops/specs.h"

namespace dtrain::cuda {

/// Returns the types in which to request filter gradients from cuDNN, the preferred type first. By default,
/// float16 prefers float32, because a sum over many images may exceed the range of float16. bfloat16 prefers
/// bfloat16, because its range suffices and its engines are faster. The environment variable
/// DTRAIN_FILTER_GRADIENT overrides this default. Its value may be `compute` (the compute type) or `float32`.
/// Throws UserError if it has any other value.
std::vector<DType> filter_gradient_types(DType compute_type);

/// A prepared cuDNN call for one direction of a convolution. x is the source of the convolution, w are its
/// weights, and y is its destination; the direction determines which of the three arrays is written.
///
/// Images are NHWC, volumes NDHWC. Weights are [filters, height, width, channels], or [filters, depth,
/// height, width, channels], in the compute type. With groups, they have only channels / groups channels.
/// Their gradient has the first type of filter_gradient_types() for which cuDNN has an engine.
///
/// The call uses cuDNN's graph API, with an operation graph of one node. cuDNN's heuristics propose plans,
/// and the first suitable plan is used. Engine 0 is the slowest engine, so it is used only if no other engine
/// is suitable.
class DnnConvolution {
 public:
  enum class Direction { forward, backward_data, backward_filter };

  /// `at_hand` is the number of bytes of workspace that are available without scratch memory. Returns nullopt
  /// if cuDNN has no engine that satisfies `math` and needs at most most_workspace() bytes.
  static std::optional<DnnConvolution> find(const DnnDevice& device, const GpuMath& math,
                                            const ConvolutionSpec& spec, Direction direction, size_t at_hand);
  static size_t most_workspace(const ConvolutionSpec& spec, DType type, size_t at_hand);

  size_t workspace_bytes() const { return plan_.workspace_bytes(); }
  /// Returns the element type of w or of its gradient.
  DType weights_type() const { return weights_type_; }
  /// Returns the plan's engine configuration.
  const DnnDescriptor& engine() const { return plan_.engine(); }
  /// Returns cuDNN's index of the engine. Engine 0 supports every convolution and is by far the slowest
  /// engine.
  int64_t engine_index() const { return plan_.engine_index(); }
  /// Enqueues the call on the stream of `handle`, which must belong to the device for which the plan was
  /// found.
  void run(cudnnHandle_t handle, const void* x, const void* w, const void* y, void* workspace) const;

 private:
  DnnConvolution(DnnPlan plan, DType weights_type) : plan_(std::move(plan)), weights_type_(weights_type) {}
  static std::optional<DnnConvolution> find(const DnnDevice& device, const GpuMath& math,
                                            const ConvolutionSpec& spec, Direction direction,
                                            DType weights_type, size_t at_hand);

  DnnPlan plan_;
  DType weights_type_;
};

}  // namespace dtrain::cuda
