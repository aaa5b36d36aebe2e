// The emulated NCCL behaves as documented.
#include <chrono>
#include <future>
#include <nccl.h>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "emulation/support.h"

namespace dtrain::emulation {
namespace {

/// Returns a communicator for each of `count` devices, all used by this thread.
std::vector<ncclComm_t> connect(int count) {
  std::vector<ncclComm_t> communicators(static_cast<size_t>(count));
  ncclUniqueId id;
  CHECK(ncclGetUniqueId(&id) == ncclSuccess);
  CHECK(ncclGroupStart() == ncclSuccess);
  for (int rank = 0; rank < count; ++rank) {
    CHECK(cudaSetDevice(rank) == cudaSuccess);
    CHECK(ncclCommInitRank(&communicators[static_cast<size_t>(rank)], count, id, rank) == ncclSuccess);
  }
  CHECK(ncclGroupEnd() == ncclSuccess);
  CHECK(cudaSetDevice(0) == cudaSuccess);
  return communicators;
}

void destroy(const std::vector<ncclComm_t>& communicators) {
  CHECK(ncclGroupStart() == ncclSuccess);
  for (const ncclComm_t communicator : communicators) CHECK(ncclCommDestroy(communicator) == ncclSuccess);
  CHECK(ncclGroupEnd() == ncclSuccess);
}

/// Sums the numbers of three devices on the first device.
float sum_of_three(const std::vector<float>& numbers) {
  const std::vector<ncclComm_t> communicators = connect(3);
  float sum = 0;
  {
    std::vector<cudaStream_t> streams(3);
    std::vector<float*> data(3);
    for (size_t rank = 0; rank < 3; ++rank) {
      CHECK(cudaSetDevice(static_cast<int>(rank)) == cudaSuccess);
      CHECK(cudaStreamCreateWithFlags(&streams[rank], cudaStreamNonBlocking) == cudaSuccess);
      CHECK(cudaMalloc(reinterpret_cast<void**>(&data[rank]), sizeof(float)) == cudaSuccess);
      CHECK(cudaMemcpy(data[rank], &numbers[rank], sizeof(float), cudaMemcpyHostToDevice) == cudaSuccess);
    }
    for (size_t rank = 0; rank < 3; ++rank) {
      CHECK(cudaSetDevice(static_cast<int>(rank)) == cudaSuccess);
      CHECK(ncclAllReduce(data[rank], data[rank], 1, ncclFloat, ncclSum, communicators[rank],
                          streams[rank]) == ncclSuccess);
    }
    for (size_t rank = 0; rank < 3; ++rank) CHECK(cudaStreamSynchronize(streams[rank]) == cudaSuccess);
    CHECK(cudaMemcpy(&sum, data[0], sizeof(float), cudaMemcpyDeviceToHost) == cudaSuccess);
    for (size_t rank = 0; rank < 3; ++rank) {
      CHECK(cudaSetDevice(static_cast<int>(rank)) == cudaSuccess);
      CHECK(cudaFree(data[rank]) == cudaSuccess);
      CHECK(cudaStreamDestroy(streams[rank]) == cudaSuccess);
    }
  }
  destroy(communicators);
  CHECK(cudaSetDevice(0) == cudaSuccess);
  return sum;
}

}  // namespace

TEST_CASE("emulated NCCL: communicators of one thread are destroyed together") {
  const Fresh fresh;
  destroy(connect(2));
  CHECK(take_failure() == "");
  for (const ncclComm_t communicator : connect(2)) ncclCommDestroy(communicator);
  CHECK(take_failure() == "an NCCL communicator is ended, and waits for members that are not");
}

namespace {

/// A communicator, a stream and an array for each of two devices.
struct Two {
  Two() : communicators(connect(2)), streams(2), data(2) {
    each([&](size_t rank) {
      CHECK(cudaStreamCreateWithFlags(&streams[rank], cudaStreamNonBlocking) == cudaSuccess);
      CHECK(cudaMalloc(reinterpret_cast<void**>(&data[rank]), sizeof(float)) == cudaSuccess);
    });
  }
  ~Two() {
    each([&](size_t rank) {
      CHECK(cudaFree(data[rank]) == cudaSuccess);
      CHECK(cudaStreamDestroy(streams[rank]) == cudaSuccess);
    });
    destroy(communicators);
    cudaSetDevice(0);
  }
  Two(const Two&) = delete;
  Two& operator=(const Two&) = delete;

  template <class Call>
  void each(const Call& call) {
    for (size_t rank = 0; rank < 2; ++rank) {
      cudaSetDevice(static_cast<int>(rank));
      call(rank);
    }
  }
  ncclResult_t sum(size_t rank) {
    return ncclAllReduce(data[rank], data[rank], 1, ncclFloat, ncclSum, communicators[rank], streams[rank]);
  }
  void synchronize() {
    each([&](size_t rank) { cudaStreamSynchronize(streams[rank]); });
  }

  std::vector<ncclComm_t> communicators;
  std::vector<cudaStream_t> streams;
  std::vector<float*> data;
};

}  // namespace

TEST_CASE("emulated NCCL: a call outside a graph while a graph's call runs is an error") {
  const Fresh fresh({.eagerness = 0});
  Two two;
  std::vector<cudaGraphExec_t> graphs(2);
  two.each([&](size_t rank) {
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamBeginCapture(two.streams[rank], cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    CHECK(two.sum(rank) == ncclSuccess);
    CHECK(cudaStreamEndCapture(two.streams[rank], &graph) == cudaSuccess);
    CHECK(cudaGraphInstantiate(&graphs[rank], graph, 0) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
    CHECK(cudaGraphUpload(graphs[rank], two.streams[rank]) == cudaSuccess);
    CHECK(cudaStreamSynchronize(two.streams[rank]) == cudaSuccess);
  });
  for (const bool waits : {true, false}) {
    two.each([&](size_t rank) { CHECK(cudaGraphLaunch(graphs[rank], two.streams[rank]) == cudaSuccess); });
    if (waits) two.synchronize();
    two.each([&](size_t rank) { CHECK((two.sum(rank) == ncclSuccess) == waits); });
    CHECK((take_failure() == "") == waits);
    two.synchronize();
  }
  two.each([&](size_t rank) { CHECK(cudaGraphExecDestroy(graphs[rank]) == cudaSuccess); });
}

TEST_CASE("emulated NCCL: a call that may wait for all devices between two members' reductions is an error") {
  const Fresh fresh;
  Two two;
  for (const int device : {0, 1}) {
    for (const bool early : {true, false}) {
      CAPTURE(device);
      CAPTURE(early);
      two.each([&](size_t rank) {
        if (rank == 1 && early) {
          cudaSetDevice(device);
          float* more = nullptr;
          cudaMalloc(reinterpret_cast<void**>(&more), sizeof(float));
          CHECK(take_failure().find("a call that may wait for all devices") == 0);
          cudaFree(more);
          take_failure();
          cudaSetDevice(1);
        }
        CHECK(two.sum(rank) == ncclSuccess);
      });
      two.synchronize();
      float* more = nullptr;
      CHECK(cudaMalloc(reinterpret_cast<void**>(&more), sizeof(float)) == cudaSuccess);
      CHECK(cudaFree(more) == cudaSuccess);
    }
  }
}

TEST_CASE("emulated NCCL: the order of sums varies unless it is specified") {
  std::set<float> sums;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Fresh fresh({.devices = 3, .seed = seed});
    sums.insert(sum_of_three({1e8f, 1, -1e8f}));
  }
  CHECK(sums == std::set<float>{0, 1});
  setenv("NCCL_ALGO", "Ring", 1);
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Fresh fresh({.devices = 3, .seed = seed});
    CHECK(sum_of_three({1e8f, 1, -1e8f}) == 0);
  }
  unsetenv("NCCL_ALGO");
}

TEST_CASE(
    "emulated NCCL: an abort waits until no graph uses the communicator, and waits forever if a GPU has "
    "failed") {
  for (const bool breaks : {false, true}) {
    CAPTURE(breaks);
    const Fresh fresh;
    const std::vector<ncclComm_t> communicators = connect(1);
    const Stream stream;
    const Array<float> data({1, 2});
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    CHECK(ncclAllReduce(data.data, data.data, 2, ncclFloat, ncclSum, communicators[0], stream) ==
          ncclSuccess);
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    cudaGraphExec_t executable = nullptr;
    CHECK(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
    std::future<void> ended = std::async(std::launch::async, [&] {
      ncclGroupStart();
      ncclCommAbort(communicators[0]);
      ncclGroupEnd();
    });
    CHECK(ended.wait_for(std::chrono::milliseconds(100)) == std::future_status::timeout);
    if (breaks) {
      break_device(0);
      CHECK(cudaMemsetAsync(data.data, 0, sizeof(float), stream) == cudaSuccess);
      CHECK(cudaStreamSynchronize(stream) == cudaErrorLaunchFailure);
    }
    CHECK(cudaGraphExecDestroy(executable) == (breaks ? cudaErrorLaunchFailure : cudaSuccess));
    if (breaks) {
      CHECK(ended.wait_for(std::chrono::milliseconds(100)) == std::future_status::timeout);
      repair_devices();
    }
    CHECK(ended.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
  }
}

}  // namespace dtrain::emulation
