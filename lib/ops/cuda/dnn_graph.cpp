#include "ops/cuda/dnn_graph.h"

#include <algorithm>
#include <array>

#include "device/cuda/check.h"

namespace dtrain::cuda {
namespace {

constexpr const char* kPreparing = "preparing an operation of cuDNN";

// cuDNN's constants for describing a device without a handle. cuDNN's headers define them only from version
// 9.8 on.
constexpr auto kDeviceDescriptor = static_cast<cudnnBackendDescriptorType_t>(38);
constexpr auto kDeviceJson = static_cast<cudnnBackendAttributeName_t>(2702);
constexpr auto kHeuristicsDevice = static_cast<cudnnBackendAttributeName_t>(204);
constexpr auto kPlanDevice = static_cast<cudnnBackendAttributeName_t>(407);

DnnDescriptor empty(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  check(cudnnBackendCreateDescriptor(type, &made), kPreparing);
  return DnnDescriptor(made);
}

/// Returns the engine configurations that cuDNN's heuristics propose, most promising first.
std::vector<DnnDescriptor> proposals(const DnnDevice& device, const DnnDescriptor& graph,
                                     cudnnBackendHeurMode_t mode) {
  DnnDescription description(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
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

/// Returns true if the engine's algorithm is less precise than direct sums of products. Winograd's
/// transform of 4x4 tiles (2x2 outputs of a 3x3 kernel) is as precise as these sums. The transforms of larger
/// tiles have errors that are ten times as large (Lavin and Gray 2015, "Fast Algorithms for Convolutional
/// Neural Networks"). With Fourier transforms, the error of every sum depends on the largest value of the
/// whole tile.
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

/// Returns true if the engine's results are as precise and as deterministic as `math` requires.
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
           (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && exact) || is_coarse(note) ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
           note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
  });
}

/// Returns null if the engine cannot run the operation.
DnnDescriptor plan_of(const DnnDevice& device, const DnnDescriptor& proposal) {
  DnnDescription description(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
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

DnnDescription::DnnDescription(cudnnBackendDescriptorType_t type) : descriptor_(empty(type)) {}

DnnDescription& DnnDescription::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                    size_t count, const void* values) {
  check(cudnnBackendSetAttribute(descriptor_.get(), name, type, static_cast<int64_t>(count), values),
        kPreparing);
  return *this;
}

DnnDescriptor DnnDescription::finish() {
  check(cudnnBackendFinalize(descriptor_.get()), kPreparing);
  return std::move(descriptor_);
}

DnnDescriptor DnnDescription::finish_if_supported() {
  const cudnnStatus_t status = cudnnBackendFinalize(descriptor_.get());
  if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return nullptr;
  check(status, kPreparing);
  return std::move(descriptor_);
}

DnnDescriptor DnnDescription::finish_if_it_works() {
  if (cudnnBackendFinalize(descriptor_.get()) != CUDNN_STATUS_SUCCESS) return nullptr;
  return std::move(descriptor_);
}

DnnDevice DnnDevice::described(const std::string& properties, int capability) {
  return DnnDevice(DnnDescription(kDeviceDescriptor)
                       .set(kDeviceJson, CUDNN_TYPE_CHAR, properties.size() + 1, properties.c_str())
                       .finish(),
                   capability);
}

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

int64_t DnnPlan::engine_index() const {
  const DnnDescriptor engine = engine_of(engine_);
  int64_t index = -1, count = 0;
  check(cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count,
                                 &index),
        kPreparing);
  return index;
}

void DnnPlan::run(cudnnHandle_t handle, const std::vector<int64_t>& ids,
                  const std::vector<const void*>& arrays, void* workspace, const char* what) const {
  const DnnDescriptor pack =
      DnnDescription(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
          .set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
          .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, arrays.size(), arrays.data())
          .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace)
          .finish();
  check(cudnnBackendExecute(handle, plan_.get(), pack.get()), what);
}

DnnDescriptor dnn_graph(const DnnDevice& device, const std::vector<DnnDescriptor>& operations) {
  std::vector<cudnnBackendDescriptor_t> pointers;
  for (const DnnDescriptor& operation : operations) pointers.push_back(operation.get());
  DnnDescription description(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (device.handle()) description.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, device.handle());
  return description
      .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, pointers.size(), pointers.data())
      .finish_if_supported();
}

std::optional<DnnPlan> find_plan(const DnnDevice& device, const GpuMath& math, const DnnDescriptor& graph,
                                 size_t most_workspace) {
  std::optional<DnnPlan> general;
  // If no engine that mode A proposes is suitable, the engines of the fallback mode are tried. They support
  // every operation.
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (DnnDescriptor& proposal : proposals(device, graph, mode)) {
      if (!keeps_to(math, proposal)) continue;
      DnnDescriptor plan = plan_of(device, proposal);
      if (!plan) continue;
      const size_t bytes = workspace_of(plan);
      if (bytes > most_workspace) continue;
      DnnPlan found(std::move(proposal), std::move(plan), bytes);
      if (found.engine_index() != 0) return found;
      if (!general) general = std::move(found);
    }
  }
  return general;
}

}  // namespace dtrain::cuda
