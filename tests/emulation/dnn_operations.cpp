// Finalization of the tensors, operations and graphs of cuDNN's graph API.
#include <algorithm>
#include <array>
#include <vector>

#include "emulation/dnn_descriptors.h"

namespace dtrain::emulation::dnn {

namespace {

using Integers = std::vector<int64_t>;

/// Returns the N numbers of a list. If the list has only N - 1 numbers, because the data are images, `depth`
/// is inserted before the height and the width.
template <size_t N>
std::array<int64_t, N> integers(Integers all, int64_t depth) {
  if (all.size() == N - 1) all.insert(all.end() - 2, depth);
  require(all.size() == N);
  std::array<int64_t, N> result{};
  std::copy(all.begin(), all.end(), result.begin());
  return result;
}

template <size_t N>
std::array<int64_t, N> integers(const Descriptor& d, cudnnBackendAttributeName_t name, int64_t depth) {
  return integers<N>(values<int64_t>(d, name, CUDNN_TYPE_INT64), depth);
}

Number number(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return Number::float32;
    case CUDNN_DATA_BFLOAT16:
      return Number::bfloat16;
    case CUDNN_DATA_HALF:
      return Number::float16;
    default:
      throw Refused{CUDNN_STATUS_NOT_SUPPORTED};
  }
}

bool flag(const Descriptor& d, cudnnBackendAttributeName_t name) {
  return d.attributes.contains(name) && value<uint8_t>(d, name, CUDNN_TYPE_BOOLEAN) != 0;
}

}  // namespace

void finish_tensor(Descriptor& d) {
  GraphTensor& t = d.tensor;
  t.name = value<int64_t>(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64);
  t.is_virtual = flag(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  t.is_by_value = flag(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  const auto type = value<cudnnDataType_t>(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE);
  t.is_integer = type == CUDNN_DATA_INT32 || type == CUDNN_DATA_BOOLEAN;
  if (!t.is_integer) t.type = number(type);
  require(!t.is_integer || t.is_virtual, CUDNN_STATUS_NOT_SUPPORTED);
  t.extents = values<int64_t>(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64);
  t.strides = values<int64_t>(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64);
  require(t.extents.size() == t.strides.size());
  require(value<int64_t>(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64) >=
          static_cast<int64_t>(bytes_of(t.type)));
  for (const int64_t extent : t.extents) require(extent > 0);
}

namespace {

/// Returns a tensor in the form that convolutions need. The tensor must have the layout channels-last,
/// without gaps.
Tensor image_of(const GraphTensor& any) {
  require(!any.is_virtual && !any.is_by_value && !any.is_integer, CUDNN_STATUS_NOT_SUPPORTED);
  Tensor t;
  t.name = any.name;
  t.type = any.type;
  t.dimensions = integers<5>(any.extents, 1);
  t.strides = integers<5>(any.strides, t.dimensions[1] * t.dimensions[3] * t.dimensions[4]);
  const auto [n, c, depth, h, w] = t.dimensions;
  require(n > 0 && t.strides == std::array{depth * h * w * c, int64_t{1}, h * w * c, w * c, c},
          CUDNN_STATUS_NOT_SUPPORTED);
  return t;
}

}  // namespace

void finish_convolution(Descriptor& d) {
  const auto axes = value<int64_t>(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64);
  require(axes == std::ssize(values<int64_t>(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64)));
  require(value<cudnnDataType_t>(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE) ==
          CUDNN_DATA_FLOAT);
  require(value<cudnnConvolutionMode_t>(d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE) ==
          CUDNN_CROSS_CORRELATION);
  d.convolution = {integers<3>(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 0),
                   integers<3>(d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 0),
                   integers<3>(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 1),
                   integers<3>(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, 1)};
}

namespace {

/// The names of the attributes of a convolution or one of its gradients.
struct Names {
  Direction direction;
  cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
};

Names names_of(cudnnBackendDescriptorType_t type) {
  switch (type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return {Direction::data,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return {Direction::filter,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    default:
      return {Direction::forward,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  }
}

}  // namespace

void finish_operation(Descriptor& d) {
  const Names names = names_of(d.type);
  Operation& o = d.operation;
  o.direction = names.direction;
  o.convolution = part(d, names.convolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR).convolution;
  o.x = image_of(part(d, names.x, CUDNN_BACKEND_TENSOR_DESCRIPTOR).tensor);
  o.w = image_of(part(d, names.w, CUDNN_BACKEND_TENSOR_DESCRIPTOR).tensor);
  o.y = image_of(part(d, names.y, CUDNN_BACKEND_TENSOR_DESCRIPTOR).tensor);
  require(value<float>(d, names.alpha, CUDNN_TYPE_FLOAT) == 1.0f, CUDNN_STATUS_NOT_SUPPORTED);
  require(value<float>(d, names.beta, CUDNN_TYPE_FLOAT) == 0.0f, CUDNN_STATUS_NOT_SUPPORTED);
  const bool of_one_type = o.w.type == o.x.type;
  const bool wide_gradient = o.direction == Direction::filter && o.w.type == Number::float32;
  require(o.x.type == o.y.type && (of_one_type || wide_gradient), CUDNN_STATUS_NOT_SUPPORTED);
  require(o.x.dimensions[0] == o.y.dimensions[0] && o.w.dimensions[0] == o.y.dimensions[1]);
  require(o.x.dimensions[1] % o.w.dimensions[1] == 0);
  require(o.y.dimensions[1] % (o.x.dimensions[1] / o.w.dimensions[1]) == 0);
  for (size_t i = 0; i < 3; ++i) {
    const Convolution& c = o.convolution;
    const int64_t extent = c.dilations[i] * (o.w.dimensions[i + 2] - 1) + 1;
    const int64_t room = o.x.dimensions[i + 2] + c.before[i] + c.after[i] - extent;
    require(room >= 0 && o.y.dimensions[i + 2] == room / c.strides[i] + 1);
  }
}

namespace {

const GraphTensor& tensor(const Descriptor& d, cudnnBackendAttributeName_t name) {
  return part(d, name, CUDNN_BACKEND_TENSOR_DESCRIPTOR).tensor;
}

/// Requires that an operation computes in float32, or in int32 or boolean if its result is an integer.
/// `name`: the attribute with the type in which the operation computes.
void require_type(const Descriptor& d, cudnnBackendAttributeName_t name, const GraphTensor& result) {
  const auto type = value<cudnnDataType_t>(d, name, CUDNN_TYPE_DATA_TYPE);
  require(result.is_integer ? type == CUDNN_DATA_INT32 || type == CUDNN_DATA_BOOLEAN
                            : type == CUDNN_DATA_FLOAT);
}

}  // namespace

void finish_node(Descriptor& d) {
  GraphNode& n = d.node;
  switch (d.type) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      n.kind = GraphNode::Kind::product;
      n.inputs = {tensor(d, CUDNN_ATTR_OPERATION_MATMUL_ADESC), tensor(d, CUDNN_ATTR_OPERATION_MATMUL_BDESC)};
      n.output = tensor(d, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
      require_type(part(d, CUDNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_BACKEND_MATMUL_DESCRIPTOR),
                   CUDNN_ATTR_MATMUL_COMP_TYPE, n.output);
      break;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: {
      const Descriptor& reduction =
          part(d, CUDNN_ATTR_OPERATION_REDUCTION_DESC, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
      n.kind = GraphNode::Kind::reduction;
      n.reduction = value<cudnnReduceTensorOp_t>(reduction, CUDNN_ATTR_REDUCTION_OPERATOR,
                                                 CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
      n.inputs = {tensor(d, CUDNN_ATTR_OPERATION_REDUCTION_XDESC)};
      n.output = tensor(d, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
      require_type(reduction, CUDNN_ATTR_REDUCTION_COMP_TYPE, n.output);
      break;
    }
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      n.kind = GraphNode::Kind::transposition;
      n.inputs = {tensor(d, CUDNN_ATTR_OPERATION_RESHAPE_XDESC)};
      n.output = tensor(d, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
      break;
    default: {
      const Descriptor& mode =
          part(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
      n.kind = GraphNode::Kind::elementwise;
      n.mode = value<cudnnPointwiseMode_t>(mode, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE);
      if (n.mode == CUDNN_POINTWISE_GEN_INDEX)
        n.axis = value<int64_t>(mode, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64);
      n.inputs = {tensor(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC)};
      for (const cudnnBackendAttributeName_t name :
           {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_TDESC})
        if (d.attributes.contains(name)) n.inputs.push_back(tensor(d, name));
      n.output = tensor(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
      require_type(mode, CUDNN_ATTR_POINTWISE_MATH_PREC, n.output);
    }
  }
  require(is_valid(n));
}

void finish_graph(Descriptor& d) {
  d.device = value<cudnnHandle_t>(d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE)->device;
  const auto operations =
      values<cudnnBackendDescriptor_t>(d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  for (const cudnnBackendDescriptor_t operation : operations)
    require(of(operation).finished, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  if (of(operations[0]).node.inputs.empty()) {
    require(operations.size() == 1, CUDNN_STATUS_NOT_SUPPORTED);
    d.operation = of(operations[0]).operation;
    return;
  }
  for (const cudnnBackendDescriptor_t operation : operations) d.nodes.push_back(of(operation).node);
}

}  // namespace dtrain::emulation::dnn
