// cuDNN's graph API: descriptors of operation graphs, and the search for plans that compute them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ops/cuda/handles.h"
#include "ops/specs.h"

namespace dtrain::cuda {

/// The GPU for which plans are found: either the GPU of a handle, or a GPU that is described by its
/// properties. For a described GPU, plans can be found but not run. With cuDNN 9.8 or later, finding these
/// plans needs neither a GPU nor a driver. Engines that cuDNN compiles at run time are an exception: they
/// need the driver's library.
class DnnDevice {
 public:
  /// `capability` is the GPU's compute capability; 90 is 9.0.
  DnnDevice(cudnnHandle_t handle, int capability) : handle_(handle), capability_(capability) {}
  /// `properties` is JSON with cuDNN's names for the values of cudaDeviceProp.
  static DnnDevice described(const std::string& properties, int capability);

  cudnnHandle_t handle() const { return handle_; }                 // null if described
  const DnnDescriptor& properties() const { return properties_; }  // null unless described
  int capability() const { return capability_; }

 private:
  DnnDevice(DnnDescriptor properties, int capability)
      : capability_(capability), properties_(std::move(properties)) {}

  cudnnHandle_t handle_ = nullptr;
  int capability_;
  DnnDescriptor properties_;
};

/// Returns cuDNN's type of an attribute with a value of this C++ type.
constexpr cudnnBackendAttributeType_t attribute_type(int64_t) {
  return CUDNN_TYPE_INT64;
}
constexpr cudnnBackendAttributeType_t attribute_type(float) {
  return CUDNN_TYPE_FLOAT;
}
constexpr cudnnBackendAttributeType_t attribute_type(bool) {
  return CUDNN_TYPE_BOOLEAN;
}
constexpr cudnnBackendAttributeType_t attribute_type(cudnnDataType_t) {
  return CUDNN_TYPE_DATA_TYPE;
}
constexpr cudnnBackendAttributeType_t attribute_type(cudnnConvolutionMode_t) {
  return CUDNN_TYPE_CONVOLUTION_MODE;
}
constexpr cudnnBackendAttributeType_t attribute_type(cudnnPointwiseMode_t) {
  return CUDNN_TYPE_POINTWISE_MODE;
}
constexpr cudnnBackendAttributeType_t attribute_type(cudnnReduceTensorOp_t) {
  return CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
}
constexpr cudnnBackendAttributeType_t attribute_type(cudnnBackendHeurMode_t) {
  return CUDNN_TYPE_HEUR_MODE;
}
constexpr cudnnBackendAttributeType_t attribute_type(cudnnHandle_t) {
  return CUDNN_TYPE_HANDLE;
}

/// Builds a cuDNN backend descriptor.
class DnnDescription {
 public:
  explicit DnnDescription(cudnnBackendDescriptorType_t type);

  template <class T>
  DnnDescription& set(cudnnBackendAttributeName_t name, T value) {
    return set(name, attribute_type(value), 1, &value);
  }
  DnnDescription& set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
    return set(name, CUDNN_TYPE_INT64, values.size(), values.data());
  }
  DnnDescription& set(cudnnBackendAttributeName_t name, const DnnDescriptor& other) {
    const cudnnBackendDescriptor_t pointer = other.get();
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &pointer);
  }
  DnnDescription& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, size_t count,
                      const void* values);

  DnnDescriptor finish();
  /// Returns null if cuDNN does not support the described object.
  DnnDescriptor finish_if_supported();
  /// Returns null on any failure. For example, the heuristics may not know the graph, or an engine may detect
  /// only at this point that it cannot run the graph.
  DnnDescriptor finish_if_it_works();

 private:
  DnnDescriptor descriptor_;
};

cudnnDataType_t dnn_type(DType type);

/// A plan for an operation graph.
class DnnPlan {
 public:
  DnnPlan(DnnDescriptor engine, DnnDescriptor plan, size_t workspace_bytes)
      : engine_(std::move(engine)), plan_(std::move(plan)), workspace_bytes_(workspace_bytes) {}

  size_t workspace_bytes() const { return workspace_bytes_; }
  /// Returns the plan's engine configuration.
  const DnnDescriptor& engine() const { return engine_; }
  /// Returns cuDNN's index of the engine. Among the engines for convolutions, engine 0 supports every
  /// convolution and is by far the slowest.
  int64_t engine_index() const;
  /// Enqueues the graph on the stream of `handle`, which must belong to the device for which the plan was
  /// found. arrays[i] is the array of the tensor with id ids[i]. For tensors that are passed by value,
  /// arrays[i] points to host memory. `what` names the call in error messages.
  void run(cudnnHandle_t handle, const std::vector<int64_t>& ids, const std::vector<const void*>& arrays,
           void* workspace, const char* what) const;

 private:
  DnnDescriptor engine_, plan_;  // engine configuration; its plan
  size_t workspace_bytes_;
};

/// Returns the graph of these operations, or null if cuDNN does not support the graph.
DnnDescriptor dnn_graph(const DnnDevice& device, const std::vector<DnnDescriptor>& operations);

/// Returns the first plan of cuDNN's heuristics that satisfies `math` and needs at most `most_workspace`
/// bytes of workspace. Returns nullopt if there is no such plan. Engine 0 is used only if no other engine is
/// suitable.
std::optional<DnnPlan> find_plan(const DnnDevice& device, const GpuMath& math, const DnnDescriptor& graph,
                                 size_t most_workspace);

}  // namespace dtrain::cuda
