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
  bool is_integer = false;   // for indices and truth values, which are virtual
  bool is_virtual = false;   // exists only between the operations of a graph
  bool is_by_value = false;  // one number in host memory
  std::vector<int64_t> extents, strides;

  int64_t elements() const;
  /// Number of elements in memory from the first element to the last, including gaps.
  int64_t extent_in_memory() const;
};

/// An operation. Axes of an input with one element are broadcast.
struct GraphNode {
  enum class Kind {
    product,  // product over the last two axes; several heads of the first input may share one of the second
    elementwise,  // a function of one to three inputs
    reduction,    // reduction of groups of elements: the first input's extents are multiples of the output's
    transposition,  // exchange of the last two axes, if that gives the output's extents
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

/// Returns the tensors of a graph that are not virtual, each once.
std::vector<GraphTensor> arrays_of(const std::vector<GraphNode>& nodes);

/// Arrays in device memory and numbers, by the names of tensors.
struct GraphArrays {
  std::map<int64_t, void*> memory;
  std::map<int64_t, double> values;
};

/// Computes in double precision. Results are rounded to their type, also if they are virtual.
void compute(const std::vector<GraphNode>& nodes, const GraphArrays& arrays);

}  // namespace dtrain::emulation
