#include "device/cuda/memory.h"

#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "device/cuda/check.h"
#include "device/cuda/current.h"

namespace dtrain::cuda {
namespace {

// Release functions run in destructors, sometimes at program exit when CUDA is already shut down, so they
// ignore errors.

void release_device(void* data, size_t) {
  try {
    select_if_none(0);
    cudaPointerAttributes attributes{};
    if (cudaPointerGetAttributes(&attributes, data) != cudaSuccess) return;
    const OnDevice on(index_of(attributes.device));
    cudaFree(data);
  } catch (const Error&) {
  }
}

void release_pinned(void* data, size_t) {
  try {
    select_if_none(0);
    cudaFreeHost(data);
  } catch (const Error&) {
  }
}

void release_pageable(void* data, size_t) {
  std::free(data);
}

Buffer allocate_pageable(size_t bytes) {
  constexpr size_t kAlignment = 4096;
  void* data = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (!data)
    throw Error(
        fmt::format("out of host memory: {:.1f} MiB were requested", static_cast<double>(bytes) / (1 << 20)));
  std::memset(data, 0, bytes);
  return {data, bytes, release_pageable};
}

[[noreturn]] void fail_out_of_memory(size_t bytes) {
  cudaGetLastError();
  constexpr double kMiB = 1 << 20;
  size_t free = 0, total = 0;
  int device = 0;
  check(cudaGetDevice(&device), "querying the current GPU");
  check(cudaMemGetInfo(&free, &total), "querying the free memory");
  throw Error(
      fmt::format("gpu:{}: out of memory: {:.1f} MiB were requested, but only {:.1f} of {:.1f} MiB are free",
                  index_of(device), static_cast<double>(bytes) / kMiB, static_cast<double>(free) / kMiB,
                  static_cast<double>(total) / kMiB));
}

}  // namespace

Buffer allocate_device(size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return {};
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, bytes);
  if (status == cudaErrorMemoryAllocation) fail_out_of_memory(bytes);
  check(status, "allocating GPU memory");
  Buffer buffer(data, bytes, release_device);
  check(cudaMemsetAsync(data, 0, bytes, stream), "zeroing GPU memory");
  // Waits for the zeroing, because the caller may use the memory on other streams at once.
  check(cudaStreamSynchronize(stream), "zeroing GPU memory");
  return buffer;
}

Buffer allocate_pinned(size_t bytes) {
  if (bytes == 0) return {};
  void* data = nullptr;
  const cudaError_t status = cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  if (status == cudaErrorMemoryAllocation || status == cudaErrorNotSupported) {
    cudaGetLastError();
    return allocate_pageable(bytes);
  }
  check(status, "allocating pinned host memory");
  Buffer buffer(data, bytes, release_pinned);
  std::memset(data, 0, bytes);
  return buffer;
}

}  // namespace dtrain::cuda
