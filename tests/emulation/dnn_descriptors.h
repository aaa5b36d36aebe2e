// Descriptors of cuDNN's graph API. A descriptor has attributes, which a caller sets, and data that is
// derived from the attributes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cudnn.h>
#include <map>
#include <vector>

#include "emulation/convolution.h"
#include "emulation/dnn_graph.h"

/// The object of a cudnnHandle_t.
struct cudnnContext {
  int device;
  cudaStream_t stream;
  int plans = 0;  // number of live plans created with this handle
};

namespace dtrain::emulation::dnn {

/// An implementation of an operation, which the heuristics propose.
struct Engine {
  int64_t index = 0;
  int64_t workspace = 0;
  bool works = true;
  std::vector<cudnnBackendNumericalNote_t> notes;
  double error = 0;  // relative error of the engine's results
};

/// The elements of an attribute as set.
struct Attribute {
  cudnnBackendAttributeType_t type;
  int64_t count;
  std::vector<std::byte> bytes;
};

/// A descriptor with its attributes and, after its finalization, with the derived data. Derived data do not
/// point to other descriptors, because these may be destroyed earlier.
struct Descriptor {
  cudnnBackendDescriptorType_t type;
  bool finished = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;
  GraphTensor tensor;
  Convolution convolution;
  Operation operation;           // the operation, if it is a convolution
  GraphNode node;                // the operation, if it is not a convolution
  std::vector<GraphNode> nodes;  // the operations of a graph, unless it is a convolution
  Engine engine;
  std::vector<Engine> engines;
  int device = 0;
  cudnnHandle_t handle = nullptr;  // handle of a plan
};

/// Returns the descriptor of a handle.
inline Descriptor& of(cudnnBackendDescriptor_t descriptor) {
  return *static_cast<Descriptor*>(descriptor);
}

/// The exception for a descriptor that is rejected.
struct Refused {
  cudnnStatus_t status;
};

/// Throws Refused with the status `otherwise` unless `holds` is true.
inline void require(bool holds, cudnnStatus_t otherwise = CUDNN_STATUS_BAD_PARAM) {
  if (!holds) throw Refused{otherwise};
}

/// Returns the elements of an attribute, which must be set and have this type.
template <class T>
std::vector<T> values(const Descriptor& d, cudnnBackendAttributeName_t name,
                      cudnnBackendAttributeType_t type) {
  const auto found = d.attributes.find(name);
  require(found != d.attributes.end(), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  require(found->second.type == type);
  std::vector<T> result(static_cast<size_t>(found->second.count));
  std::memcpy(result.data(), found->second.bytes.data(), found->second.bytes.size());
  return result;
}

/// Returns an attribute of one element.
template <class T>
T value(const Descriptor& d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) {
  const std::vector<T> all = values<T>(d, name, type);
  require(all.size() == 1);
  return all[0];
}

/// Returns the descriptor to which an attribute refers. The descriptor must have this type and must be
/// finalized.
inline const Descriptor& part(const Descriptor& d, cudnnBackendAttributeName_t name,
                              cudnnBackendDescriptorType_t type) {
  const Descriptor& found = of(value<cudnnBackendDescriptor_t>(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR));
  require(found.type == type);
  require(found.finished, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  return found;
}

// Finalization. These functions derive the data of a descriptor from its attributes. If cuDNN or this
// emulation does not support the attributes, they throw Refused.

/// Finalizes a tensor.
void finish_tensor(Descriptor& d);
/// Finalizes the options of a convolution.
void finish_convolution(Descriptor& d);
/// Finalizes a convolution or one of its gradients.
void finish_operation(Descriptor& d);
/// Finalizes any other operation: a matrix product, an elementwise operation, a reduction or a transposition.
void finish_node(Descriptor& d);
/// Finalizes a graph: one convolution, or several operations that compute attention.
void finish_graph(Descriptor& d);
/// Finalizes a query of the heuristics: proposes engines for a graph.
void find_engines(Descriptor& d);

}  // namespace dtrain::emulation::dnn
