// Graphs of matrix products, elementwise operations and reductions, computed operation by operation from
// their descriptions.
#pragma once

#include <cstdint>
#include <cudnn.h>
#include <map>
#include <vector>

#include "emulation/numbers.h"

namespace dtrain::emulation {

/// A tensor with any number of axes.
struct GraphTensor {
  int64_t name = 0;
  Number type = Number::float32;
  bool is_integer = false;   // true for indices and truth values, which are never in memory
  bool is_virtual = false;   // whether the tensor is only passed between operations of a graph
  bool is_by_value = false;  // one number in host memory
  std::vector<int64_t> extents, strides;

  int64_t elements() const;
  /// Number of elements in memory from the first element to the last, including gaps.
  int64_t extent_in_memory() const;
};

/// An operation. If an axis of an input has one element, the input is broadcast along this axis.
struct GraphNode {
  enum class Kind {
    // Matrix product over the last two axes. One matrix of the second input may be multiplied with several
    // matrices (heads) of the first input.
    product,
    elementwise,  // a function of one to three inputs
    // Reduction of groups of elements. The extents of the input are multiples of the extents of the output.
    reduction,
    // Exchange of the last two axes. The result must have the extents of the output.
    transposition,
  };
  Kind kind = Kind::product;
  cudnnPointwiseMode_t mode = CUDNN_POINTWISE_IDENTITY;
  cudnnReduceTensorOp_t reduction = CUDNN_REDUCE_TENSOR_ADD;
  int64_t axis = 0;  // axis whose indices are generated
  std::vector<GraphTensor> inputs;
  GraphTensor output;
};

/// Returns true if compute() knows the operation, and the extents fit.
bool is_valid(const GraphNode& node);

/// Returns the tensors of a graph that are not virtual. Each tensor is returned once, even if several
/// operations use it.
std::vector<GraphTensor> arrays_of(const std::vector<GraphNode>& nodes);

/// The data of a call, by the names of tensors: arrays in device memory, and numbers that are passed by
/// value.
struct GraphArrays {
  std::map<int64_t, void*> memory;
  std::map<int64_t, double> values;
};

/// Computes a graph in double precision. Each result is rounded to the type of its tensor, even if the tensor
/// is virtual.
void compute(const std::vector<GraphNode>& nodes, const GraphArrays& arrays);

}  // namespace dtrain::emulation
