#include "device/cuda/context.h"

#include "base/error.h"
#include "device/cuda/captured_graph.h"
#include "device/cuda/check.h"
#include "device/cuda/chosen_device.h"
#include "device/cuda/compatibility.h"
#include "device/cuda/current.h"
#include "device/cuda/memory.h"
#include "device/gpu_info.h"

namespace dtrain::cuda {
namespace {

Stream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  return Stream(stream);
}

/// Creates a stream with the highest priority. Its kernels are scheduled before the kernels of other streams.
Stream make_urgent_stream() {
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "querying the GPU's attributes");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest), "creating a stream");
  return Stream(stream);
}

EventHandle make_handle(bool spin) {
  cudaEvent_t event = nullptr;
  const unsigned flags = cudaEventDisableTiming | (spin ? 0u : cudaEventBlockingSync);
  check(cudaEventCreateWithFlags(&event, flags), "creating an event");
  return EventHandle(event);
}

int attribute(cudaDeviceAttr name, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, name, ordinal(device)), "querying the GPU's attributes");
  return value;
}

/// Returns the error that a query of a GPU has returned; "" if there is none.
std::string failure_of(cudaError_t status, int device) {
  if (status == cudaSuccess) return "";
  cudaGetLastError();
  return status == cudaErrorNotReady ? "" : describe_failure(status, device);
}

}  // namespace

CudaEvent::CudaEvent(cudaStream_t stream, bool spin)
    : stream_(stream), device_(chosen_device), event_(make_handle(spin)) {}

void CudaEvent::record() {
  record_on(stream_);
}

void CudaEvent::record_on(cudaStream_t stream) {
  check(cudaEventRecord(event_.get(), stream), "recording an event", device_);
}

void CudaEvent::synchronize() {
  check(cudaEventSynchronize(event_.get()), "waiting for the GPU", device_);
}

/// Selects the device first, because a query by a thread that has selected no device would initialize GPU 0.
bool CudaEvent::has_completed() const noexcept {
  try {
    const OnDevice on(device_);
    return cudaEventQuery(event_.get()) == cudaSuccess;
  } catch (const Error&) {
    return false;
  }
}

std::string CudaEvent::failure() const {
  try {
    const OnDevice on(device_);
    return failure_of(cudaEventQuery(event_.get()), device_);
  } catch (const Error& error) {  // selecting the GPU failed, so the event could not be queried
    return error.what();
  }
}

CudaContext::CudaContext(DeviceId device, bool deterministic, bool spin)
    : device_(device), deterministic_(deterministic), spin_(spin) {
  const OnDevice on(index());
  require_kernels(index());
  // The flag applies to all contexts of this GPU. If the driver rejects it, the host busy-waits, which wastes
  // CPU time but is not an error.
  if (!spin && cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync) != cudaSuccess) cudaGetLastError();
  multiprocessors_ = attribute(cudaDevAttrMultiProcessorCount, index());
  capability_ = 10 * attribute(cudaDevAttrComputeCapabilityMajor, index()) +
                attribute(cudaDevAttrComputeCapabilityMinor, index());
  compute_ = make_stream();
  copy_ = make_stream();
  collective_ = make_urgent_stream();
  health_ = make_stream();
  forked_ = std::make_unique<CudaEvent>(compute(), spin_);
  joined_ = std::make_unique<CudaEvent>(collective(), spin_);
}

CudaContext::~CudaContext() {
  try {
    const OnDevice on(index());
    for (const cudaStream_t stream : {compute(), copy(), collective()}) cudaStreamSynchronize(stream);
    dnn_.reset();
    blas_.reset();
  } catch (const Error&) {  // the device is lost, so the driver frees the resources
  }
}

void CudaContext::attach() {
  use_device(index());
  const std::vector<int> cores = cores_near(gpu_pci_id(index()));
  if (cores.size() < available_cores().size()) near_.emplace(cores);
}

void CudaContext::detach() {
  near_.reset();
}

Buffer CudaContext::take(size_t bytes) {
  const OnDevice on(index());
  return allocate_device(bytes, compute());
}

Buffer CudaContext::allocate_host(size_t bytes) {
  const OnDevice on(index());
  return allocate_pinned(bytes);
}

size_t CudaContext::free_bytes() {
  const OnDevice on(index());
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "querying the free memory");
  return free + workspace_.bytes();  // the workspace counts as free, because plans always include it
}

/// Makes the stream wait for the event. Does nothing if the event was never recorded.
void CudaContext::let_wait(cudaStream_t stream, const CudaEvent& event) const {
  select_if_none(index());
  check(cudaStreamWaitEvent(stream, event.get(), 0), "making one stream wait for another", index());
}

void CudaContext::wait_for(cudaStream_t stream) const {
  select_if_none(index());
  check(cudaStreamSynchronize(stream), "waiting for the GPU", index());
}

/// Enqueues a copy. CUDA detects from each pointer whether it points to host or device memory.
void CudaContext::enqueue(void* dst, const void* src, size_t bytes, cudaStream_t stream) const {
  if (bytes == 0) return;
  select_if_none(index());
  check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, stream), "copying to or from the GPU", index());
}

void CudaContext::copy_to_device(void* dst, const void* src, size_t bytes) {
  enqueue(dst, src, bytes, compute());
  wait_for(compute());
}

void CudaContext::copy_to_host(void* dst, const void* src, size_t bytes) {
  enqueue(dst, src, bytes, compute());
  wait_for(compute());
}

void CudaContext::enqueue_copy(void* dst, const void* src, size_t bytes) {
  enqueue(dst, src, bytes, compute());
}

void CudaContext::enqueue_zero(void* dst, size_t bytes) {
  if (bytes == 0) return;
  select_if_none(index());
  check(cudaMemsetAsync(dst, 0, bytes, compute()), "zeroing GPU memory", index());
}

std::unique_ptr<Event> CudaContext::make_event() {
  const OnDevice on(index());
  return std::make_unique<CudaEvent>(compute(), spin_);
}

void CudaContext::wait(const Event& event) {
  let_wait(compute(), dynamic_cast<const CudaEvent&>(event));
}

void CudaContext::upload(void* dst, const void* src, size_t bytes, const Event& consumed, Event& uploaded) {
  let_wait(copy(), dynamic_cast<const CudaEvent&>(consumed));
  enqueue(dst, src, bytes, copy());
  auto& done = dynamic_cast<CudaEvent&>(uploaded);
  done.record_on(copy());
  let_wait(compute(), done);
}

std::unique_ptr<CapturedGraph> CudaContext::capture(const std::function<void()>& work) {
  if (!graphs_wanted()) return nullptr;
  return std::make_unique<CudaCapturedGraph>(compute(), work);
}

void CudaContext::synchronize() {
  for (const cudaStream_t stream : {copy(), collective(), compute()}) wait_for(stream);
}

std::string CudaContext::failure() {
  try {
    const OnDevice on(index());
    return failure_of(cudaStreamQuery(health_.get()), index());
  } catch (const Error& error) {  // selecting the GPU failed, so the stream could not be queried
    return error.what();
  }
}

void CudaContext::fork_collective() {
  forked_->record();
  let_wait(collective(), *forked_);
}

void CudaContext::join_collective() {
  joined_->record();
  let_wait(compute(), *joined_);
}

cublasLtHandle_t CudaContext::blas() {
  if (!blas_) {
    const OnDevice on(index());
    cublasLtHandle_t made = nullptr;
    check(cublasLtCreate(&made), "starting cuBLASLt");
    blas_.reset(made);
  }
  return blas_.get();
}

cudnnHandle_t CudaContext::dnn() {
  if (!dnn_) {
    const OnDevice on(index());
    cudnnHandle_t made = nullptr;
    check(cudnnCreate(&made), "starting cuDNN");
    dnn_.reset(made);
    check(cudnnSetStream(made, compute()), "setting cuDNN's stream");
  }
  return dnn_.get();
}

size_t CudaContext::workspace_bytes() const {
  constexpr size_t kMiB = 1 << 20;
  return (capability() >= 90 ? 64 : 32) * kMiB;  // NVIDIA's advice for cuBLAS, plus room for convolutions
}

void* CudaContext::workspace() {
  if (!workspace_.data()) workspace_ = allocate(workspace_bytes());
  return workspace_.data();
}

}  // namespace dtrain::cuda
