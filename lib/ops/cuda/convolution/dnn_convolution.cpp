#include "ops/cuda/convolution/dnn_convolution.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "base/error.h"
#include "device/cuda/check.h"

namespace dtrain::cuda {
namespace {

using Direction = DnnConvolution::Direction;

constexpr const char* kPreparing = "preparing a convolution";

// Ids of the operation graph's tensors.
constexpr int64_t kX = 'x', kW = 'w', kY = 'y';

// Names for describing a device without a handle. cuDNN's headers have them from version 9.8 on.
constexpr auto kDeviceDescriptor = static_cast<cudnnBackendDescriptorType_t>(38);
constexpr auto kDeviceJson = static_cast<cudnnBackendAttributeName_t>(2702);
constexpr auto kHeuristicsDevice = static_cast<cudnnBackendAttributeName_t>(204);
constexpr auto kPlanDevice = static_cast<cudnnBackendAttributeName_t>(407);

// Returns cuDNN's type of an attribute with a value of this C++ type.
constexpr cudnnBackendAttributeType_t attribute_type(int64_t) {
  return CUDNN_TYPE_INT64;
}
constexpr cudnnBackendAttributeType_t attribute_type(float) {
  return CUDNN_TYPE_FLOAT;
}
constexpr cudnnBackendAttributeType_t attribute_type(cudnnDataType_t) {
  return CUDNN_TYPE_DATA_TYPE;
}
constexpr cudnnBackendAttributeType_t attribute_type(cudnnConvolutionMode_t) {
  return CUDNN_TYPE_CONVOLUTION_MODE;
}
constexpr cudnnBackendAttributeType_t attribute_type(cudnnBackendHeurMode_t) {
  return CUDNN_TYPE_HEUR_MODE;
}
constexpr cudnnBackendAttributeType_t attribute_type(cudnnHandle_t) {
  return CUDNN_TYPE_HANDLE;
}

/// Builds a cuDNN backend descriptor.
class Description {
 public:
  explicit Description(cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t made = nullptr;
    check(cudnnBackendCreateDescriptor(type, &made), kPreparing);
    descriptor_.reset(made);
  }

  template <class T>
  Description& set(cudnnBackendAttributeName_t name, T value) {
    return set(name, attribute_type(value), 1, &value);
  }
  Description& set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
    return set(name, CUDNN_TYPE_INT64, values.size(), values.data());
  }
  Description& set(cudnnBackendAttributeName_t name, const DnnDescriptor& other) {
    const cudnnBackendDescriptor_t pointer = other.get();
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &pointer);
  }
  Description& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, size_t count,
                   const void* values) {
    check(cudnnBackendSetAttribute(descriptor_.get(), name, type, static_cast<int64_t>(count), values),
          kPreparing);
    return *this;
  }

  DnnDescriptor finish() {
    check(cudnnBackendFinalize(descriptor_.get()), kPreparing);
    return std::move(descriptor_);
  }
  /// Returns null if cuDNN does not support the described object.
  DnnDescriptor finish_if_supported() {
    const cudnnStatus_t status = cudnnBackendFinalize(descriptor_.get());
    if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return nullptr;
    check(status, kPreparing);
    return std::move(descriptor_);
  }
  /// Returns null on any failure: the heuristics may not know such a graph, and an engine may only now detect
  /// that it cannot run it.
  DnnDescriptor finish_if_it_works() {
    if (cudnnBackendFinalize(descriptor_.get()) != CUDNN_STATUS_SUCCESS) return nullptr;
    return std::move(descriptor_);
  }

 private:
  DnnDescriptor descriptor_;
};

cudnnDataType_t dnn_type(DType type) {
  switch (type) {
    case DType::bfloat16:
      return CUDNN_DATA_BFLOAT16;
    case DType::float16:
      return CUDNN_DATA_HALF;
    default:
      break;
  }
  return CUDNN_DATA_FLOAT;
}

/// Returns one number for each axis of the convolution; the depth is left out unless the convolution is of
/// volumes.
std::vector<int64_t> axes_of(const ConvolutionSpec& spec, int64_t depth, int64_t height, int64_t width) {
  if (spec.is_volume()) return {depth, height, width};
  return {height, width};
}

/// cuDNN's order of axes is n, c, h, w (or n, c, d, h, w), independent of their order in memory, where the
/// channels are innermost.
DnnDescriptor tensor(int64_t name, DType type, int64_t n, const std::vector<int64_t>& axes, int64_t c) {
  std::vector<int64_t> dimensions = {n, c}, strides(axes.size() + 2, 1);
  dimensions.insert(dimensions.end(), axes.begin(), axes.end());
  int64_t pixels = 1;
  for (size_t i = axes.size(); i-- > 0; pixels *= axes[i]) strides[i + 2] = pixels * c;
  strides[0] = pixels * c;
  return Description(CUDNN_BACKEND_TENSOR_DESCRIPTOR)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, name)
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, dnn_type(type))
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16})
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, dimensions)
      .set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .finish();
}

DnnDescriptor geometry(const ConvolutionSpec& spec) {
  const Padding3& sides = spec.padding;
  return Description(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
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

/// A graph of one operation. Owns its parts.
struct OperationGraph {
  DnnDescriptor x, w, y, convolution, operation;
  DnnDescriptor graph;  // null if cuDNN does not support the operation

  OperationGraph(const DnnDevice& device, const ConvolutionSpec& spec, DType type, DType weights_type,
                 Direction direction)
      : x(tensor(kX, type, spec.batch, axes_of(spec, spec.depth, spec.height, spec.width), spec.channels)),
        w(tensor(kW, weights_type, spec.filters,
                 axes_of(spec, spec.kernel_depth, spec.kernel_height, spec.kernel_width), spec.channels)),
        y(tensor(kY, type, spec.batch, axes_of(spec, spec.out_depth(), spec.out_height(), spec.out_width()),
                 spec.filters)),
        convolution(geometry(spec)) {
    const OperationNames names = names_of(direction);
    operation = Description(names.type)
                    .set(names.convolution, convolution)
                    .set(names.x, x)
                    .set(names.w, w)
                    .set(names.y, y)
                    .set(names.alpha, 1.0f)
                    .set(names.beta, 0.0f)
                    .finish_if_supported();
    if (!operation) return;
    Description description(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (device.handle()) description.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, device.handle());
    graph = description.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation).finish_if_supported();
  }
};

DnnDescriptor empty(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  check(cudnnBackendCreateDescriptor(type, &made), kPreparing);
  return DnnDescriptor(made);
}

/// Returns the engine configurations that cuDNN's heuristics propose, most promising first.
std::vector<DnnDescriptor> proposals(const DnnDevice& device, const DnnDescriptor& graph,
                                     cudnnBackendHeurMode_t mode) {
  Description description(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  description.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph).set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (!device.handle()) description.set(kHeuristicsDevice, device.properties());
  const DnnDescriptor heuristics = description.finish_if_it_works();
  if (!heuristics) return {};
  int64_t count = 0;
  check(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
        kPreparing);
  std::vector<DnnDescriptor> owners;
  std::vector<cudnnBackendDescriptor_t> pointers;
  for (int64_t i = 0; i < count; ++i) {
    owners.push_back(empty(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    pointers.push_back(owners.back().get());
  }
  if (count > 0)
    check(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, pointers.data()),
          kPreparing);
  owners.resize(static_cast<size_t>(count));
  return owners;
}

/// Returns true if the engine's algorithm loses more precision than sums of products in float32. Winograd's
/// transform of 4x4 tiles (2x2 sums of 3x3 weights) does not; that of larger tiles loses ten times as much
/// (Lavin and Gray 2015, "Fast Algorithms for Convolutional Neural Networks"). The error of Fourier
/// transforms depends on the largest value of a tile, not on each sum.
bool is_coarse(cudnnBackendNumericalNote_t note) {
  return note == CUDNN_NUMERICAL_NOTE_FFT || note == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 ||
         note == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13;
}

/// Returns the engine of an engine configuration.
DnnDescriptor engine_of(const DnnDescriptor& proposal) {
  DnnDescriptor engine = empty(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t pointer = engine.get();
  int64_t count = 0;
  check(cudnnBackendGetAttribute(proposal.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 1, &count, &pointer),
        kPreparing);
  return engine;
}

/// Returns true if the engine's results satisfy `math`.
bool keeps_to(const GpuMath& math, const DnnDescriptor& proposal) {
  const DnnDescriptor engine = engine_of(proposal);
  int64_t count = 0;
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  check(cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes.data()),
        kPreparing);
  count =
      std::min<int64_t>(count, std::ssize(notes));  // a newer cuDNN may have more notes than the array holds
  const bool exact = math.type == DType::float32 && !math.tf32;
  return std::none_of(notes.begin(), notes.begin() + count, [&](cudnnBackendNumericalNote_t note) {
    return (note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC && math.deterministic) ||
           ((note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE || is_coarse(note)) && exact) ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
           note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
  });
}

/// Returns null if the engine cannot run the operation.
DnnDescriptor plan_of(const DnnDevice& device, const DnnDescriptor& proposal) {
  Description description(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (device.handle()) {
    description.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, device.handle());
  } else {
    description.set(kPlanDevice, device.properties());
  }
  return description.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, proposal).finish_if_it_works();
}

size_t workspace_of(const DnnDescriptor& plan) {
  int64_t bytes = 0, count = 0;
  check(cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                 &count, &bytes),
        kPreparing);
  return static_cast<size_t>(bytes);
}

}  // namespace

DnnDevice DnnDevice::described(const std::string& properties) {
  return DnnDevice(Description(kDeviceDescriptor)
                       .set(kDeviceJson, CUDNN_TYPE_CHAR, properties.size() + 1, properties.c_str())
                       .finish());
}

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
  const size_t limit = most_workspace(spec, math.type, at_hand);
  std::optional<DnnConvolution> general;
  // The fallback mode lists engines that work everywhere.
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (DnnDescriptor& proposal : proposals(device, described.graph, mode)) {
      if (!keeps_to(math, proposal)) continue;
      DnnDescriptor plan = plan_of(device, proposal);
      if (!plan) continue;
      const size_t bytes = workspace_of(plan);
      if (bytes > limit) continue;
      DnnConvolution found(std::move(proposal), std::move(plan), weights_type, bytes);
      if (found.engine_index() != 0) return found;
      if (!general) general = std::move(found);
    }
  }
  return general;
}

size_t DnnConvolution::most_workspace(const ConvolutionSpec& spec, DType type, size_t at_hand) {
  const int64_t elements =
      spec.batch * (spec.src_pixels() * spec.channels + spec.dst_pixels() * spec.filters);
  const size_t images = static_cast<size_t>(elements) * bytes_of(type);
  // Enough for engines that first convert both images to another layout, as cuDNN does for many gradients.
  return at_hand + images + images / 4;
}

int64_t DnnConvolution::engine_index() const {
  const DnnDescriptor engine = engine_of(engine_);
  int64_t index = -1, count = 0;
  check(cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count,
                                 &index),
        kPreparing);
  return index;
}

void DnnConvolution::run(cudnnHandle_t handle, const void* x, const void* w, const void* y,
                         void* workspace) const {
  const std::array<const void*, 3> arrays = {x, w, y};
  const DnnDescriptor pack =
      Description(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
          .set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::vector{kX, kW, kY})
          .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, arrays.size(), arrays.data())
          .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace)
          .finish();
  check(cudnnBackendExecute(handle, plan_.get(), pack.get()), "a convolution");
}

}  // namespace dtrain::cuda
