// Emulates the part of cuDNN's graph API that dtrain uses for convolutions and attention: the functions of
// the API, and the execution of plans.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <cudnn.h>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "emulation/convolution.h"
#include "emulation/dnn_descriptors.h"
#include "emulation/dnn_graph.h"
#include "emulation/memory.h"
#include "emulation/queue.h"

using namespace dtrain::emulation;
using namespace dtrain::emulation::dnn;

namespace {

std::set<cudnnHandle_t> handles;  // live handles

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

/// The arrays that the caller of a plan has passed, found by the names of their tensors.
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
  /// Returns the array of a tensor, which must have `elements` elements in device memory.
  void* find(int64_t name, int64_t elements, Number type) const {
    void* const array = find(name);
    require(is_device_memory(array, static_cast<size_t>(elements) * bytes_of(type)));
    require(reinterpret_cast<uintptr_t>(array) % 16 == 0, CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
    return array;
  }

 private:
  std::vector<int64_t> names_;
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
    if (t.is_by_value) {  // numbers are read when the plan is called
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
      *count += 2;  // only the second query reveals that some engines are unusable
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
