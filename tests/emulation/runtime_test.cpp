// The emulated streams, events, captures and memory behave as documented by CUDA.
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include "emulation/kernels.h"
#include "emulation/support.h"

namespace dtrain::emulation {
namespace {

using Floats = std::vector<float>;

Floats zeros() {
  return Floats(4);
}
Floats all(float value) {
  return Floats(4, value);
}

}  // namespace

TEST_CASE("emulated streams: a stream's work runs in order, and not before a thread waits for it") {
  const Fresh fresh({.eagerness = 0});
  const Stream stream;
  const Array<float> data(zeros());
  const Pinned<float> seen(4);
  std::memset(seen.data, 0, 4 * sizeof(float));
  scale_add(data.data, 1, 1, 4, stream);
  scale_add(data.data, 2, 0, 4, stream);
  CHECK(cudaMemcpyAsync(seen.data, data.data, 4 * sizeof(float), cudaMemcpyDefault, stream) == cudaSuccess);
  CHECK(seen.data[0] == 0);
  CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(seen.data[0] == 2);
  CHECK(cudaStreamQuery(stream) == cudaSuccess);
}

TEST_CASE("emulated streams: without an event, two streams run in any order") {
  bool first = false, second = false;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Fresh fresh({.seed = seed});
    const Stream a, b;
    const Array<float> data(zeros());
    scale_add(data.data, 1, 1, 4, a);
    scale_add(data.data, 2, 0, 4, b);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    const Floats values = data.read(a);
    (values == all(2) ? first : second) = true;
    CHECK((values == all(2) || values == all(1)));
  }
  CHECK(first);
  CHECK(second);
}

TEST_CASE("emulated streams: a stream waits for another stream's event") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Fresh fresh({.seed = seed});
    const Stream a, b;
    const Event event;
    const Array<float> data(zeros());
    scale_add(data.data, 1, 1, 4, a);
    CHECK(cudaEventRecord(event, a) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(b, event, 0) == cudaSuccess);
    scale_add(data.data, 2, 0, 4, b);
    CHECK(data.read(b) == all(2));
    CHECK(cudaEventQuery(event) == cudaSuccess);
    CHECK(cudaEventSynchronize(event) == cudaSuccess);
  }
}

TEST_CASE("emulated streams: the null stream and blocking streams wait for each other") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Fresh fresh({.seed = seed});
    const Stream a(cudaStreamDefault);
    const Array<float> data(zeros());
    scale_add(data.data, 1, 1, 4, a);
    scale_add(data.data, 2, 0, 4, nullptr);
    scale_add(data.data, 1, 3, 4, a);
    CHECK(data.read(a) == all(5));
  }
}

TEST_CASE("emulated capture: captured work runs only when the graph is launched, at every launch") {
  const Fresh fresh;
  const Stream stream;
  const Array<float> data(zeros());
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  scale_add(data.data, 2, 1, 4, stream);
  scale_add(data.data, 1, 1, 4, stream);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  CHECK(data.read(stream) == all(0));
  cudaGraphExec_t executable = nullptr;
  REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(cudaGraphLaunch(executable, stream) == cudaSuccess);
  CHECK(cudaGraphLaunch(executable, stream) == cudaSuccess);
  CHECK(data.read(stream) == all(6));
  CHECK(cudaGraphExecDestroy(executable) == cudaSuccess);
}

TEST_CASE("emulated capture: streams fork and join by events") {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Fresh fresh({.seed = seed});
    const Stream a, b;
    const Event forked, joined;
    const Array<float> data(zeros());
    CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    scale_add(data.data, 1, 1, 4, a);
    CHECK(cudaEventRecord(forked, a) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(b, forked, 0) == cudaSuccess);
    scale_add(data.data, 3, 0, 4, b);
    CHECK(cudaEventRecord(joined, b) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(a, joined, 0) == cudaSuccess);
    scale_add(data.data, 1, 1, 4, a);
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamEndCapture(a, &graph) == cudaSuccess);
    cudaGraphExec_t executable = nullptr;
    REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
    CHECK(cudaGraphLaunch(executable, a) == cudaSuccess);
    CHECK(data.read(a) == all(4));
    CHECK(cudaGraphExecDestroy(executable) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  }
}

TEST_CASE("emulated capture: calls that cannot be captured are errors") {
  const Fresh fresh;
  const Stream a, b;
  const Event event;
  const Array<float> data(zeros());
  cudaGraph_t graph = nullptr;
  const auto begin = [&] {
    REQUIRE(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    scale_add(data.data, 1, 1, 4, a);
  };
  const auto end = [&] {
    const cudaError_t status = cudaStreamEndCapture(a, &graph);
    CHECK(graph == nullptr);
    cudaGetLastError();
    return status;
  };
  begin();
  CHECK(cudaStreamSynchronize(a) == cudaErrorStreamCaptureUnsupported);
  CHECK(end() == cudaErrorStreamCaptureInvalidated);
  begin();
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 16) == cudaErrorStreamCaptureUnsupported);
  CHECK(end() == cudaErrorStreamCaptureInvalidated);
  begin();  // a copy from pageable memory
  float value = 0;
  CHECK(cudaMemcpyAsync(data.data, &value, 4, cudaMemcpyDefault, a) == cudaErrorStreamCaptureUnsupported);
  CHECK(end() == cudaErrorStreamCaptureInvalidated);
  begin();  // an unjoined fork
  CHECK(cudaEventRecord(event, a) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(b, event, 0) == cudaSuccess);
  scale_add(data.data, 1, 1, 4, b);
  CHECK(end() == cudaErrorStreamCaptureUnjoined);
  CHECK(cudaEventRecord(event, b) == cudaSuccess);
  begin();  // an external event
  CHECK(cudaStreamWaitEvent(a, event, 0) == cudaErrorStreamCaptureIsolation);
  CHECK(end() == cudaErrorStreamCaptureInvalidated);
  CHECK(data.read(a) == all(0));
}

TEST_CASE("emulated memory: allocations that are too large, overruns and leaks are errors") {
  const Fresh fresh({.devices = 1, .memory_bytes = 1 << 20});
  void *memory = nullptr, *more = nullptr;
  CHECK(cudaMalloc(&memory, 700 << 10) == cudaSuccess);
  CHECK(bytes_in_use() == 700 << 10);
  size_t free = 0, total = 0;
  CHECK(cudaMemGetInfo(&free, &total) == cudaSuccess);
  CHECK(free == 324 << 10);
  CHECK(total == 1 << 20);
  CHECK(cudaMalloc(&more, 400 << 10) == cudaErrorMemoryAllocation);
  CHECK(more == nullptr);
  CHECK(cudaMemset(memory, 0, (700 << 10) + 1) == cudaErrorInvalidValue);
  CHECK(restart({.devices = 1}) == "716800 bytes of device 0 were never freed\n");
}

TEST_CASE("emulated memory: freeing twice is an error") {
  const Fresh fresh({.eagerness = 0});
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 64) == cudaSuccess);
  CHECK(cudaFree(memory) == cudaSuccess);
  CHECK(cudaFree(memory) == cudaErrorInvalidValue);
  CHECK(take_failure() == "freed memory that was never allocated");
}

#if !defined(__SANITIZE_ADDRESS__)  // AddressSanitizer would report the write first
TEST_CASE("emulated memory: writing past the end is an error") {
  const Fresh fresh;
  {
    const Stream stream;
    const Array<float> data(zeros());
    scale_add(data.data, 0, 1, 5, stream);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(take_failure() == "something wrote past the end of 16 bytes of device memory");
    scale_add(data.data + 4, 0, 0, 1, stream);
    std::vector<unsigned char> guard(4, 0xa5);
    float was = 0;
    std::memcpy(&was, guard.data(), 4);
    scale_add(data.data + 4, 0, was, 1, stream);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  }
}
#endif

TEST_CASE("emulated devices: missing devices, and handles of another device, are errors") {
  {
    const Fresh fresh({.devices = 0});
    int count = 5;
    CHECK(cudaGetDeviceCount(&count) == cudaErrorNoDevice);
    CHECK(count == 0);
    CHECK(cudaGetLastError() == cudaErrorNoDevice);
  }
  const Fresh fresh;
  const Stream stream;
  const Array<float> data(zeros());
  CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
  CHECK(cudaSetDevice(1) == cudaSuccess);
  CHECK_THROWS(scale_add(data.data, 1, 1, 4, stream));
  CHECK(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("emulated devices: work that waits for a failed device never finishes") {
  const Fresh fresh;
  const Stream healthy;
  CHECK(cudaSetDevice(1) == cudaSuccess);
  cudaStream_t broken = nullptr;
  CHECK(cudaStreamCreateWithFlags(&broken, cudaStreamNonBlocking) == cudaSuccess);
  {
    const Event event;
    const Array<float> data(zeros());
    CHECK(cudaMemsetAsync(data.data, 1, sizeof(float), broken) == cudaSuccess);
    CHECK(cudaEventRecord(event, broken) == cudaSuccess);
    break_device(1);
    CHECK(cudaSetDevice(0) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(healthy, event, 0) == cudaSuccess);
    CHECK(cudaEventSynchronize(event) == cudaErrorLaunchFailure);
    CHECK(cudaStreamSynchronize(broken) == cudaErrorLaunchFailure);
    for (int i = 0; i < 100; ++i) CHECK(cudaStreamQuery(healthy) == cudaErrorNotReady);
    const Array<float> elsewhere(zeros());
    CHECK(cudaSetDevice(1) == cudaSuccess);
    void* memory = nullptr;
    CHECK(cudaMalloc(&memory, 4) == cudaErrorLaunchFailure);
    CHECK(cudaSetDevice(0) == cudaSuccess);
    repair_devices();
    CHECK(cudaStreamSynchronize(healthy) == cudaSuccess);
    CHECK(data.read(broken) == zeros());
  }
  CHECK(cudaStreamDestroy(broken) == cudaSuccess);
}

}  // namespace dtrain::emulation
