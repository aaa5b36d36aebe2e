// Emulates the part of cuDNN's graph API that dtrain uses, for convolutions and attention. Some of the
// engines that the heuristics propose do not work, and some are not deterministic.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <cudnn.h>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "emulation/convolution.h"
#include "emulation/dnn_graph.h"
#include "emulation/memory.h"
#include "emulation/queue.h"

using namespace dtrain::emulation;

struct cudnnContext {
  int device;
  cudaStream_t stream;
  int plans = 0;  // number of live plans created with this handle
};

namespace {

using Integers = std::vector<int64_t>;

struct Engine {
  int64_t index = 0;
  int64_t workspace = 0;
  bool works = true;
  std::vector<cudnnBackendNumericalNote_t> notes;
  double error = 0;  // relative error of its results
};

struct Attribute {
  cudnnBackendAttributeType_t type;
  int64_t count;
  std::vector<std::byte> bytes;
};

}  // namespace

/// The attributes as set and, after finalization, the derived data. Derived data does not point to other
/// descriptors, which may be destroyed.
struct Descriptor {
  cudnnBackendDescriptorType_t type;
  bool finished = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;
  GraphTensor tensor;
  Convolution convolution;
  Operation operation;           // of a convolution
  GraphNode node;                // any other operation
  std::vector<GraphNode> nodes;  // the operations of a graph, unless it is a convolution
  Engine engine;
  std::vector<Engine> engines;
  int device = 0;
  cudnnHandle_t handle = nullptr;  // handle of a plan
};

namespace {

std::set<cudnnHandle_t> handles;  // live handles

Descriptor& of(cudnnBackendDescriptor_t descriptor) {
  return *static_cast<Descriptor*>(descriptor);
}

size_t bytes_of_type(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
      return 8;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return sizeof(void*);
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    default:
      return 4;
  }
}

/// Reason for rejecting a descriptor.
struct Refused {
  cudnnStatus_t status;
};

void require(bool holds, cudnnStatus_t otherwise = CUDNN_STATUS_BAD_PARAM) {
  if (!holds) throw Refused{otherwise};
}

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

template <class T>
T value(const Descriptor& d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) {
  const std::vector<T> all = values<T>(d, name, type);
  require(all.size() == 1);
  return all[0];
}

/// Returns N numbers. If there are only N - 1, `depth` is inserted before the height and the width.
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

const Descriptor& part(const Descriptor& d, cudnnBackendAttributeName_t name,
                       cudnnBackendDescriptorType_t type) {
  const Descriptor& found = of(value<cudnnBackendDescriptor_t>(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR));
  require(found.type == type);
  require(found.finished, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  return found;
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

/// Returns the tensor of a convolution: channels last, densely packed.
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

const GraphTensor& tensor(const Descriptor& d, cudnnBackendAttributeName_t name) {
  return part(d, name, CUDNN_BACKEND_TENSOR_DESCRIPTOR).tensor;
}

/// The type in which a matrix product, a reduction or an elementwise operation computes.
void require_type(const Descriptor& d, cudnnBackendAttributeName_t name, const GraphTensor& result) {
  const auto type = value<cudnnDataType_t>(d, name, CUDNN_TYPE_DATA_TYPE);
  require(result.is_integer ? type == CUDNN_DATA_INT32 || type == CUDNN_DATA_BOOLEAN
                            : type == CUDNN_DATA_FLOAT);
}

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

/// Attention has engines in 16-bit types if rows are aligned; backward only for up to 128 columns, as on
/// GPUs before compute capability 9.0. The engines for backward are not deterministic, without a note.
void find_attention_engines(Descriptor& d) {
  bool backward = false;
  for (const GraphNode& node : d.nodes) backward = backward || node.kind == GraphNode::Kind::transposition;
  for (const GraphTensor& array : arrays_of(d.nodes)) {
    if (array.is_by_value) continue;
    const bool is_row = array.type != Number::float32 && array.extents[1] > 1;
    const int64_t columns = array.strides[3] == 1 ? array.extents[3] : array.extents[2];
    if (!is_row) continue;
    if (columns % 8 != 0 || array.strides[1] % 8 != 0 || (backward && columns > 128)) return;
  }
  if (value<cudnnBackendHeurMode_t>(d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE) ==
      CUDNN_HEUR_MODE_FALLBACK)
    return;
  d.engines = {{2, 0, false, {}},
               {backward ? 6 : 1, backward ? 1 << 17 : 256, true, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}}};
}

/// Some operations have no engines, as in cuDNN: weight gradients with different dilations along the axes
/// have none; float32 weight gradients of 16-bit images have some only for square filters; above the grid's
/// limit of images there are none; above the machine's limit of elements there is only engine 0.
void find_engines(Descriptor& d) {
  const Descriptor& graph =
      part(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  d.operation = graph.operation;
  d.nodes = graph.nodes;
  d.device = graph.device;
  if (!d.nodes.empty()) return find_attention_engines(d);
  const Operation& o = d.operation;
  if (o.direction == Direction::filter && o.convolution.dilations[1] != o.convolution.dilations[2])
    throw Refused{CUDNN_STATUS_NOT_SUPPORTED};
  if (o.w.type != o.x.type && o.w.dimensions[3] != o.w.dimensions[4])
    throw Refused{CUDNN_STATUS_NOT_SUPPORTED};
  if (o.x.dimensions[0] > 65535) throw Refused{CUDNN_STATUS_NOT_SUPPORTED};
  if (std::max(o.x.elements(), o.y.elements()) > machine().dnn_elements) {
    d.engines = {{0, 0, true, {}}};
    return;
  }
  const auto mode = value<cudnnBackendHeurMode_t>(d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE);
  if (mode == CUDNN_HEUR_MODE_FALLBACK) {
    d.engines = {{1, 0, true, {}}};
    return;
  }
  const bool exact = o.x.type == Number::float32;
  Engine fast{2, 1 << 16, true, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}};
  const Engine coarse{
      3, 0, true, {CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6}, 0x1p-11};
  if (o.direction != Direction::forward) fast.notes.push_back(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  d.engines = {{4, 0, false, {}}, {5, int64_t{1} << 40, true, {}}};
  if (exact) d.engines.push_back(coarse);
  d.engines.push_back(fast);
  if (!exact) d.engines.push_back({6, 1 << 15, true, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}});
}

void finish(Descriptor& d) {
  require(!d.finished);
  switch (d.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      finish_tensor(d);
      break;
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      finish_convolution(d);
      break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      finish_operation(d);
      break;
    case CUDNN_BACKEND_MATMUL_DESCRIPTOR:
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_REDUCTION_DESCRIPTOR:
      break;
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      finish_node(d);
      break;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      finish_graph(d);
      break;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      find_engines(d);
      break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
      const auto handle = value<cudnnHandle_t>(d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE);
      const Descriptor& chosen =
          part(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
      require(chosen.engine.works, CUDNN_STATUS_NOT_SUPPORTED);
      d.operation = chosen.operation;
      d.nodes = chosen.nodes;
      d.engine = chosen.engine;
      d.device = chosen.device;
      d.handle = handle;
      ++handle->plans;
      break;
    }
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      break;
    default:
      throw Refused{CUDNN_STATUS_NOT_SUPPORTED};
  }
  d.finished = true;
}

/// The arrays of a call by the names of their tensors.
class GivenArrays {
 public:
  explicit GivenArrays(const Descriptor& pack)
      : names_(values<int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64)),
        arrays_(values<void*>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR)) {
    require(names_.size() == arrays_.size());
  }
  void* find(int64_t name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    require(found != names_.end());
    return arrays_[static_cast<size_t>(found - names_.begin())];
  }
  /// Requires `elements` elements of device memory.
  void* find(int64_t name, int64_t elements, Number type) const {
    void* const array = find(name);
    require(is_device_memory(array, static_cast<size_t>(elements) * bytes_of(type)));
    require(reinterpret_cast<uintptr_t>(array) % 16 == 0, CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
    return array;
  }

 private:
  Integers names_;
  std::vector<void*> arrays_;
};

std::function<void()> work_of(const Descriptor& plan, const GivenArrays& given) {
  const Operation& o = plan.operation;
  if (plan.nodes.empty()) {
    std::array<void*, 3> arrays{};
    const std::array<const Tensor*, 3> tensors = {&o.x, &o.w, &o.y};
    for (size_t i = 0; i < 3; ++i)
      arrays[i] = given.find(tensors[i]->name, tensors[i]->elements(), tensors[i]->type);
    return [o, error = plan.engine.error, arrays] { convolve(o, error, arrays); };
  }
  GraphArrays arrays;
  for (const GraphTensor& t : arrays_of(plan.nodes)) {
    if (t.is_by_value) {  // the value is read now
      arrays.values[t.name] = read_number(given.find(t.name), t.type, 0);
    } else {
      arrays.memory[t.name] = given.find(t.name, t.extent_in_memory(), t.type);
    }
  }
  return [nodes = plan.nodes, arrays] { compute(nodes, arrays); };
}

cudnnStatus_t execute(cudnnHandle_t handle, const Descriptor& plan, const Descriptor& pack) {
  require(plan.finished && pack.finished, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  require(handle->device == current_device());
  const std::function<void()> work = work_of(plan, GivenArrays(pack));
  void* const workspace = value<void*>(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR);
  const auto bytes = static_cast<size_t>(plan.engine.workspace);
  require(bytes == 0 || is_device_memory(workspace, bytes));
  if (!load_kernels(handle->device, "cuDNN")) return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  const cudaError_t status = enqueue(handle->stream, [work, workspace, bytes] {
    if (bytes > 0) std::memset(workspace, 0xff, bytes);
    work();
  });
  return answer(status) == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED_CUDART;
}

std::atomic<double> seconds_of_a_plan{0};

template <class Call>
cudnnStatus_t guarded(Call&& call) {
  try {
    return call();
  } catch (const Refused& refused) {
    return refused.status;
  }
}

}  // namespace

void dtrain::emulation::slow_down_plans(double seconds) {
  seconds_of_a_plan = seconds;
}

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* made) {
  const auto lock = lock_machine();
  if (machine().devices == 0) return CUDNN_STATUS_NOT_INITIALIZED;
  if (forbid_capture() != cudaSuccess) return CUDNN_STATUS_INTERNAL_ERROR;
  *made = new cudnnContext{current_device(), nullptr};
  handles.insert(*made);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  const auto lock = lock_machine();
  if (handle->plans > 0) fail_device("a cuDNN handle is destroyed before plans that were made with it");
  handles.erase(handle);
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
size_t cudnnGetVersion() {
  return CUDNN_VERSION;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS         ? "CUDNN_STATUS_SUCCESS"
         : status == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
         : status == CUDNN_STATUS_BAD_PARAM     ? "CUDNN_STATUS_BAD_PARAM"
                                                : "another cuDNN error";
}
void cudnnGetLastErrorString(char* message, size_t bytes) {
  if (bytes > 0) message[0] = 0;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* made) {
  auto* descriptor = new Descriptor();
  descriptor->type = type;
  *made = descriptor;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  const auto lock = lock_machine();
  if (handles.contains(of(descriptor).handle)) --of(descriptor).handle->plans;
  delete &of(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* elements) {
  if (of(descriptor).finished || count < 1 || !elements) return CUDNN_STATUS_BAD_PARAM;
  const auto* bytes = static_cast<const std::byte*>(elements);
  of(descriptor).attributes[name] = {
      type, count, {bytes, bytes + static_cast<size_t>(count) * bytes_of_type(type)}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  if (of(descriptor).type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds_of_a_plan));
  const auto lock = lock_machine();
  return guarded([&] {
    finish(of(descriptor));
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                       int64_t wanted, int64_t* count, void* elements) {
  const Descriptor& d = of(descriptor);
  if (!d.finished) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    *count = static_cast<int64_t>(d.engines.size());
    if (!elements) {
      *count += 2;  // only the second query reveals that some are unusable
      return CUDNN_STATUS_SUCCESS;
    }
    *count = std::min(*count, wanted);
    auto* into = static_cast<cudnnBackendDescriptor_t*>(elements);
    for (int64_t i = 0; i < *count; ++i) {
      Descriptor& config = of(into[i]);
      if (config.type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) return CUDNN_STATUS_BAD_PARAM;
      config.engine = d.engines[static_cast<size_t>(i)];
      config.operation = d.operation;
      config.nodes = d.nodes;
      config.device = d.device;
      config.finished = true;
    }
    return CUDNN_STATUS_SUCCESS;
  }
  if (name == CUDNN_ATTR_ENGINECFG_ENGINE && type == CUDNN_TYPE_BACKEND_DESCRIPTOR && wanted == 1) {
    Descriptor& engine = of(*static_cast<cudnnBackendDescriptor_t*>(elements));
    if (engine.type != CUDNN_BACKEND_ENGINE_DESCRIPTOR) return CUDNN_STATUS_BAD_PARAM;
    engine.engine = d.engine;
    engine.finished = true;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
  }
  if (name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX && type == CUDNN_TYPE_INT64 && wanted == 1) {
    *static_cast<int64_t*>(elements) = d.engine.index;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
  }
  if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && type == CUDNN_TYPE_NUMERICAL_NOTE) {
    *count = std::min(wanted, static_cast<int64_t>(d.engine.notes.size()));
    std::copy_n(d.engine.notes.begin(), *count, static_cast<cudnnBackendNumericalNote_t*>(elements));
    return CUDNN_STATUS_SUCCESS;
  }
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && type == CUDNN_TYPE_INT64 && wanted == 1) {
    *static_cast<int64_t*>(elements) = d.engine.workspace;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
  }
  return CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  const auto lock = lock_machine();
  return guarded([&] { return execute(handle, of(plan), of(pack)); });
}

}  // extern "C"
