// Shared code of the tests that use the emulated machine.
#pragma once

#include <cstring>
#include <cuda_runtime.h>
#include <vector>

#include <doctest/doctest.h>

#include "emulation/emulation.h"

namespace dtrain::emulation {

/// A new emulated machine for a test case. The destructor checks that nothing was leaked and that no device
/// has failed.
class Fresh {
 public:
  explicit Fresh(const Machine& machine = {}) {
    cudaSetDevice(0);
    REQUIRE(restart(machine) == "");
    if (machine.devices > 0) cudaSetDevice(0);
  }
  ~Fresh() {
    CHECK(take_failure() == "");
    CHECK(restart({}) == "");
  }
  Fresh(const Fresh&) = delete;
  Fresh& operator=(const Fresh&) = delete;
};

struct Stream {
  explicit Stream(unsigned flags = cudaStreamNonBlocking) {
    REQUIRE(cudaStreamCreateWithFlags(&stream, flags) == cudaSuccess);
  }
  ~Stream() { CHECK(cudaStreamDestroy(stream) == cudaSuccess); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream; }
  cudaStream_t stream = nullptr;
};

struct Event {
  Event() { REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess); }
  ~Event() { CHECK(cudaEventDestroy(event) == cudaSuccess); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event; }
  cudaEvent_t event = nullptr;
};

/// Pinned host memory.
template <class T>
struct Pinned {
  explicit Pinned(size_t n) {
    REQUIRE(cudaMallocHost(reinterpret_cast<void**>(&data), n * sizeof(T)) == cudaSuccess);
  }
  ~Pinned() { CHECK(cudaFreeHost(data) == cudaSuccess); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  T* data = nullptr;
};

/// Device memory.
template <class T>
struct Array {
  explicit Array(size_t n) : size(n) {
    REQUIRE(cudaMalloc(reinterpret_cast<void**>(&data), n * sizeof(T)) == cudaSuccess);
  }
  explicit Array(const std::vector<T>& values) : Array(values.size()) {
    REQUIRE(cudaMemcpy(data, values.data(), size * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
  }
  ~Array() { CHECK(cudaFree(data) == cudaSuccess); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  /// Reads the array after all earlier work of the stream has run.
  std::vector<T> read(cudaStream_t stream) const {
    std::vector<T> values(size);
    CHECK(cudaMemcpyAsync(values.data(), data, size * sizeof(T), cudaMemcpyDeviceToHost, stream) ==
          cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    return values;
  }

  T* data = nullptr;
  size_t size = 0;
};

}  // namespace dtrain::emulation
