// Emulates the CUDA runtime's memory and error functions.
#include <cstring>

#include "emulation/memory.h"
#include "emulation/queue.h"

using namespace dtrain::emulation;

namespace {

/// Checks a copy between these pointers in this direction.
cudaError_t check_copy(const void* dst, const void* src, size_t bytes, cudaMemcpyKind kind) {
  const bool to_device = device_of(dst) >= 0, from_device = device_of(src) >= 0;
  if ((to_device && !is_device_memory(dst, bytes)) || (from_device && !is_device_memory(src, bytes)))
    return cudaErrorInvalidValue;
  const bool says_to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool says_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind == cudaMemcpyDefault) return cudaSuccess;
  return says_to == to_device && says_from == from_device ? cudaSuccess : cudaErrorInvalidMemcpyDirection;
}

void copy_now(void* dst, const void* src, size_t bytes) {
  if ((device_of(dst) >= 0 && !is_device_memory(dst, bytes)) ||
      (device_of(src) >= 0 && !is_device_memory(src, bytes))) {
    return fail_device("memory was copied that has been freed meanwhile");
  }
  std::memmove(dst, src, bytes);
  if (bytes > 0 && peer_copy_is_corrupted(device_of(dst), device_of(src)))
    *static_cast<unsigned char*>(dst) ^= 0xff;
}

/// Returns whether this is pageable host memory. Pageable memory is copied during the call, after the
/// stream's earlier work.
bool is_pageable(const void* data) {
  return device_of(data) < 0 && !is_pinned(data);
}

cudaError_t copy(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const auto lock = lock_machine();
  if (bytes == 0) return answer(device_status());
  if (const cudaError_t status = check_copy(dst, src, bytes, kind); status != cudaSuccess)
    return answer(status);
  if (is_captured(stream) && (is_pageable(dst) || is_pageable(src))) {
    stream->capture->broken = true;
    return answer(cudaErrorStreamCaptureUnsupported);
  }
  const auto ready = [to = device_of(dst), from = device_of(src)] { return !peer_copy_hangs(to, from); };
  return answer(enqueue(
      stream, [=] { copy_now(dst, src, bytes); }, ready));
}

cudaError_t allocate_host(void** made, size_t bytes) {
  const auto lock = lock_machine();
  if (machine().devices == 0) return answer(cudaErrorNoDevice);
  if (const cudaError_t status = forbid_capture(); status != cudaSuccess) return answer(status);
  if (device_status() != cudaSuccess) return answer(device_status());
  wait_for_all_devices();
  *made = nullptr;
  if (bytes > machine().pinned_bytes) return answer(cudaErrorMemoryAllocation);
  *made = bytes > 0 ? allocate_pinned(bytes) : nullptr;
  return answer(bytes > 0 && !*made ? cudaErrorMemoryAllocation : cudaSuccess);
}

}  // namespace

extern "C" {

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const auto lock = lock_machine();
  if (machine().devices == 0) return answer(cudaErrorNoDevice);
  if (const cudaError_t status = make_context(current_device()); status != cudaSuccess) return answer(status);
  if (const int status = oddity_of(current_device()).memory_info)
    return answer(static_cast<cudaError_t>(status));
  *free = free_bytes(current_device());
  *total = machine().memory_bytes;
  return answer(device_status());
}

cudaError_t cudaMalloc(void** made, size_t bytes) {
  const auto lock = lock_machine();
  *made = nullptr;
  if (machine().devices == 0) return answer(cudaErrorNoDevice);
  if (const cudaError_t status = forbid_capture(); status != cudaSuccess) return answer(status);
  if (bytes == 0 || device_status() != cudaSuccess) return answer(device_status());
  wait_for_all_devices();
  ++counts().allocations;
  *made = allocate_memory(current_device(), bytes);
  return answer(*made ? cudaSuccess : cudaErrorMemoryAllocation);
}

/// Frees memory. Like the CUDA runtime, first waits for all work of the device.
cudaError_t cudaFree(void* data) {
  if (!data) return cudaSuccess;
  {
    const auto lock = lock_machine();
    wait_for_all_devices();
  }
  if (const cudaError_t status = cudaDeviceSynchronize(); status == cudaErrorStreamCaptureUnsupported)
    return status;
  const auto lock = lock_machine();
  const std::string wrong = free_memory(data);
  if (!wrong.empty()) fail_device(wrong);
  return answer(wrong.empty() ? device_status() : cudaErrorInvalidValue);
}

cudaError_t cudaHostAlloc(void** made, size_t bytes, unsigned) {
  return allocate_host(made, bytes);
}
cudaError_t cudaMallocHost(void** made, size_t bytes) {
  return allocate_host(made, bytes);
}
cudaError_t cudaFreeHost(void* data) {
  if (!data) return cudaSuccess;
  {
    const auto lock = lock_machine();
    wait_for_all_devices();
  }
  for (const int device : contexts()) {  // other devices have no work
    const int before = current_device();
    cudaSetDevice(device);
    const cudaError_t status = cudaDeviceSynchronize();
    cudaSetDevice(before);
    if (status == cudaErrorStreamCaptureUnsupported) return status;
  }
  const auto lock = lock_machine();
  return answer(free_pinned(data) ? device_status() : cudaErrorInvalidValue);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data) {
  const auto lock = lock_machine();
  *attributes = cudaPointerAttributes{};
  const int device = device_of(data);
  attributes->device = device;
  attributes->type = device >= 0       ? cudaMemoryTypeDevice
                     : is_pinned(data) ? cudaMemoryTypeHost
                                       : cudaMemoryTypeUnregistered;
  attributes->devicePointer = device >= 0 || is_pinned(data) ? const_cast<void*>(data) : nullptr;
  attributes->hostPointer = device >= 0 ? nullptr : const_cast<void*>(data);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const cudaError_t status = copy(dst, src, bytes, kind, stream);
  bool pageable = false;
  {
    const auto lock = lock_machine();
    pageable = is_pageable(dst) || is_pageable(src);
  }
  return status == cudaSuccess && pageable && bytes > 0 ? cudaStreamSynchronize(stream) : status;
}

cudaError_t cudaMemcpy(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind) {
  const cudaError_t status = copy(dst, src, bytes, kind, nullptr);
  return status == cudaSuccess ? cudaStreamSynchronize(nullptr) : status;
}

cudaError_t cudaMemcpyPeerAsync(void* dst, int, const void* src, int, size_t bytes, cudaStream_t stream) {
  return copy(dst, src, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemsetAsync(void* dst, int value, size_t bytes, cudaStream_t stream) {
  const auto lock = lock_machine();
  if (bytes == 0) return answer(device_status());
  if (!is_device_memory(dst, bytes)) return answer(cudaErrorInvalidValue);
  return answer(enqueue(stream, [=] {
    if (!is_device_memory(dst, bytes)) return fail_device("memory was set that has been freed meanwhile");
    std::memset(dst, value, bytes);
  }));
}

cudaError_t cudaMemset(void* dst, int value, size_t bytes) {
  return cudaMemsetAsync(dst, value, bytes, nullptr);
}

/// This function is not used: the emulation's ops/cuda/launch.h launches kernels.
cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t) {
  return answer(cudaErrorNotSupported);
}

cudaError_t cudaProfilerStart() {
  return cudaSuccess;
}
cudaError_t cudaProfilerStop() {
  return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t status) {
  switch (status) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorInvalidMemcpyDirection:
      return "cudaErrorInvalidMemcpyDirection";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureIsolation:
      return "cudaErrorStreamCaptureIsolation";
    case cudaErrorStreamCaptureImplicit:
      return "cudaErrorStreamCaptureImplicit";
    case cudaErrorCapturedEvent:
      return "cudaErrorCapturedEvent";
    default:
      return "another CUDA error";
  }
}

const char* cudaGetErrorString(cudaError_t status) {
  return cudaGetErrorName(status);
}

}  // extern "C"
