#include "ops/cuda/convolution/dnn_convolution.h"

#include <cstdlib>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain::cuda {
namespace {

using Direction = DnnConvolution::Direction;

// Ids of the operation graph's tensors.
constexpr int64_t kX = 'x', kW = 'w', kY = 'y';

/// Returns one number for each axis of the convolution: {depth, height, width} for volumes, {height, width}
/// for images.
std::vector<int64_t> axes_of(const ConvolutionSpec& spec, int64_t depth, int64_t height, int64_t width) {
  if (spec.is_volume()) return {depth, height, width};
  return {height, width};
}

/// Returns the descriptor of a tensor. cuDNN requires the axes in the order n, c, h, w (or n, c, d, h, w). In
/// memory, the channels are innermost; the strides describe this.
DnnDescriptor tensor(int64_t name, DType type, int64_t n, const std::vector<int64_t>& axes, int64_t c) {
  std::vector<int64_t> dimensions = {n, c}, strides(axes.size() + 2, 1);
  dimensions.insert(dimensions.end(), axes.begin(), axes.end());
  int64_t pixels = 1;
  for (size_t i = axes.size(); i-- > 0; pixels *= axes[i]) strides[i + 2] = pixels * c;
  strides[0] = pixels * c;
  return DnnDescription(CUDNN_BACKEND_TENSOR_DESCRIPTOR)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, name)
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, dnn_type(type))
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16})
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, dimensions)
      .set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .finish();
}

DnnDescriptor geometry(const ConvolutionSpec& spec) {
  const Padding3& sides = spec.padding;
  return DnnDescription(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{spec.is_volume() ? 3 : 2})
      .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, axes_of(spec, sides.front, sides.top, sides.left))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, axes_of(spec, sides.back, sides.bottom, sides.right))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
           axes_of(spec, spec.stride_depth, spec.stride_height, spec.stride_width))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS,
           axes_of(spec, spec.dilation_depth, spec.dilation_height, spec.dilation_width))
      .finish();
}

/// The descriptor type and attribute names of a direction's operation.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
};

OperationNames names_of(Direction direction) {
  switch (direction) {
    case Direction::backward_data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Direction::backward_filter:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    case Direction::forward:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

/// A graph of one operation. Owns its parts. cuDNN derives the number of groups from the channels of x and w.
struct OperationGraph {
  DnnDescriptor x, w, y, convolution;
  std::vector<DnnDescriptor> operations;
  DnnDescriptor graph;  // null if cuDNN does not support the operation

  OperationGraph(const DnnDevice& device, const ConvolutionSpec& spec, DType type, DType weights_type,
                 Direction direction)
      : x(tensor(kX, type, spec.batch, axes_of(spec, spec.depth, spec.height, spec.width), spec.channels)),
        w(tensor(kW, weights_type, spec.filters,
                 axes_of(spec, spec.kernel_depth, spec.kernel_height, spec.kernel_width),
                 spec.filter_channels())),
        y(tensor(kY, type, spec.batch, axes_of(spec, spec.out_depth(), spec.out_height(), spec.out_width()),
                 spec.filters)),
        convolution(geometry(spec)) {
    const OperationNames names = names_of(direction);
    operations.push_back(DnnDescription(names.type)
                             .set(names.convolution, convolution)
                             .set(names.x, x)
                             .set(names.w, w)
                             .set(names.y, y)
                             .set(names.alpha, 1.0f)
                             .set(names.beta, 0.0f)
                             .finish_if_supported());
    if (operations.back()) graph = dnn_graph(device, operations);
  }
};

}  // namespace

std::vector<DType> filter_gradient_types(DType compute_type) {
  if (compute_type == DType::float32) return {DType::float32};
  const char* text = std::getenv("DTRAIN_FILTER_GRADIENT");
  const std::string wanted = text ? text : "";
  if (!wanted.empty() && wanted != "compute" && wanted != "float32")
    throw UserError(fmt::format(
        "DTRAIN_FILTER_GRADIENT in the environment: expected 'compute' or 'float32', found '{}'", wanted));
  if (wanted == "compute" || (wanted.empty() && compute_type == DType::bfloat16))
    return {compute_type, DType::float32};
  return {DType::float32, compute_type};
}

std::optional<DnnConvolution> DnnConvolution::find(const DnnDevice& device, const GpuMath& math,
                                                   const ConvolutionSpec& spec, Direction direction,
                                                   size_t at_hand) {
  if (direction != Direction::backward_filter) return find(device, math, spec, direction, math.type, at_hand);
  for (const DType type : filter_gradient_types(math.type))
    if (auto found = find(device, math, spec, direction, type, at_hand)) return found;
  return std::nullopt;
}

std::optional<DnnConvolution> DnnConvolution::find(const DnnDevice& device, const GpuMath& math,
                                                   const ConvolutionSpec& spec, Direction direction,
                                                   DType weights_type, size_t at_hand) {
  const OperationGraph described(device, spec, math.type, weights_type, direction);
  if (!described.graph) return std::nullopt;
  auto plan = find_plan(device, math, described.graph, most_workspace(spec, math.type, at_hand));
  if (!plan) return std::nullopt;
  return DnnConvolution(std::move(*plan), weights_type);
}

size_t DnnConvolution::most_workspace(const ConvolutionSpec& spec, DType type, size_t at_hand) {
  const int64_t elements =
      spec.batch * (spec.src_pixels() * spec.channels + spec.dst_pixels() * spec.filters);
  const size_t images = static_cast<size_t>(elements) * bytes_of(type);
  // This is enough for engines that first convert both images to another layout. cuDNN does this for many
  // gradients.
  return at_hand + images + images / 4;
}

void DnnConvolution::run(cudnnHandle_t handle, const void* x, const void* w, const void* y,
                         void* workspace) const {
  plan_.run(handle, {kX, kW, kY}, {x, w, y}, workspace, "a convolution");
}

}  // namespace dtrain::cuda
